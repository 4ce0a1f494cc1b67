// One look for all who ask at about the same time: scrapes, the watch and operators. And the metrics that come from it.

import type { Config } from '../../config.ts';
import { cached } from '../../base/collections/cached.ts';
import type { Parts } from '../../base/parts.ts';
import { connectDatabase } from '../sessions/database.ts';
import { PARTITIONED } from '../upkeep/partitions.ts';
import { type Looks, readLooks } from './looks.ts';
import { TABLES } from './sizes.ts';

/** A scrape comes every few seconds, and no threshold is shorter than a minute. */
const CACHED_MS = 5_000;
/** The lease of the relay. */
const RELAY_LEASE = 'outbox';

/** @returns the present look, at most CACHED_MS old; rejects while Postgres is away */
export function composeLooks(
  { database }: Config,
  parts: Parts & {
    /** The configured ones now. */
    readonly sources: () => readonly string[];
  },
): () => Promise<Looks> {
  const { sessions, log, now, started } = parts;
  const connection = connectDatabase({ ...database, name: 'looks', connections: 1, sessions, log });
  started.defer(connection.close);
  const look = cached({ maxAgeMs: CACHED_MS, ask: () => readLooks(connection.db), now });
  exposeGauges(parts, look);
  return look;
}

function exposeGauges(
  { metrics: { gauge }, sources }: Pick<Parts, 'metrics'> & { readonly sources: () => readonly string[] },
  look: () => Promise<Looks>,
): void {
  // NaN while the database cannot be reached: an error would hide the other metrics, and an old look would be wrong.
  const known = (read: (looks: Looks) => number) => () => look().then(read, () => Number.NaN);
  gauge(
    'tallyhook_outbox_pending',
    known(({ outbox }) => outbox.counts.pending),
  );
  gauge(
    'tallyhook_outbox_returned',
    known(({ outbox }) => outbox.counts.returned),
  );
  gauge(
    'tallyhook_outbox_parked',
    known(({ outbox }) => outbox.counts.parked),
  );
  gauge(
    'tallyhook_replay_entries',
    known(({ outbox }) => outbox.copies),
  );
  gauge(
    'tallyhook_outbox_oldest_seconds',
    known(({ outbox }) => outbox.oldestPendingS ?? 0),
  );
  gauge(
    'tallyhook_quarantine_deliveries',
    known(({ quarantined }) => quarantined.count),
  );
  gauge(
    'tallyhook_conflicts',
    known(({ conflicts }) => conflicts.count),
  );
  gauge(
    'tallyhook_stuck_jobs',
    known(({ stuckJobs }) => stuckJobs.count),
  );
  gauge(
    'tallyhook_relay_lease_age_seconds',
    known(({ leases }) => leases.find(({ name }) => name === RELAY_LEASE)?.ageS ?? Number.NaN),
  );
  /** The same for each value of a label. */
  const each = <Label extends string>(
    label: Label,
    values: () => readonly string[],
    read: (looks: Looks, value: string) => number | null | undefined,
  ) => {
    return async () => {
      const looks = await look().catch(() => undefined);
      return values().map((value) => ({
        labels: { [label]: value } as Record<Label, string>,
        value: (looks && read(looks, value)) ?? Number.NaN,
      }));
    };
  };
  gauge(
    'tallyhook_table_bytes',
    each(
      'table',
      () => TABLES,
      ({ tables }, name) => tables.find(({ table }) => table === name)?.bytes,
    ),
  );
  gauge(
    'tallyhook_partitions_ahead',
    each(
      'table',
      () => PARTITIONED,
      ({ partitions }, name) => partitions.find(({ table }) => table === name)?.daysAhead,
    ),
  );
  gauge(
    'tallyhook_source_last_verified_seconds',
    each(
      'source',
      sources,
      (looks, name) => looks.sources.find(({ source }) => source === name)?.lastVerifiedS,
    ),
  );
}
