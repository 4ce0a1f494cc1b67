// One look for all who ask at about the same time: scrapes, the watch and operators. And the metrics that come from it.

import type { Config } from '../../config.ts';
import { cached } from '../../base/collections/cached.ts';
import type { Parts } from '../../base/parts.ts';
import { connectDatabase } from '../sessions/database.ts';
import { PARTITIONED } from '../upkeep/partitions.ts';
import { HOURS_LOOKED_AT, type Looks, readLooks, type SourceLook } from './looks.ts';
import { TABLES } from './sizes.ts';

/** A scrape comes every few seconds, and no threshold is shorter than a minute. */
const CACHED_MS = 5_000;
/**
 * A scrape waits for a look. One that waits for a lock, such as that of a migration, or for a slow disk gives up soon, so that the
 * metrics that come from elsewhere are not held back.
 */
const TIMEOUTS = { lockTimeoutMs: 500, statementTimeoutMs: 2_000, queryTimeoutMs: 2_500 };
/** The lease of the relay. */
const RELAY_LEASE = 'outbox';

type LooksParts = Parts & {
  /** The configured ones now. */
  readonly sources: () => readonly string[];
  /** Of a look that is shared. CACHED_MS where not given. */
  readonly maxAgeMs?: number | undefined;
};

/** @returns the present look, at most `maxAgeMs` old; rejects while Postgres is away */
export function composeLooks({ database }: Config, parts: LooksParts): () => Promise<Looks> {
  const { sessions, log, now, started, maxAgeMs = CACHED_MS } = parts;
  const connection = connectDatabase({
    url: database.url,
    ...TIMEOUTS,
    name: 'looks',
    connections: 1,
    sessions,
    log,
  });
  started.defer(connection.close);
  const look = cached({ maxAgeMs, ask: () => readLooks(connection.db), now });
  exposeGauges(parts, look);
  return look;
}

type Value = number | null | undefined;

const VALUES = {
  tallyhook_outbox_pending: ({ outbox }) => outbox.counts.pending,
  tallyhook_outbox_returned: ({ outbox }) => outbox.counts.returned,
  tallyhook_outbox_parked: ({ outbox }) => outbox.counts.parked,
  tallyhook_outbox_oldest_seconds: ({ outbox }) => outbox.oldestPendingS ?? 0,
  tallyhook_replay_entries: ({ outbox }) => outbox.copies,
  tallyhook_quarantine_deliveries: ({ quarantined }) => quarantined.count,
  tallyhook_conflicts: ({ conflicts }) => conflicts.count,
  tallyhook_stuck_jobs: ({ stuckJobs }) => stuckJobs.count,
  tallyhook_relay_lease_age_seconds: ({ leases }) => leases.find(({ name }) => name === RELAY_LEASE)?.ageS,
} as const satisfies Readonly<Record<string, (looks: Looks) => Value>>;

const OF_SOURCES = {
  tallyhook_source_delivering_ratio: (source) => (source?.hoursDelivered ?? 0) / HOURS_LOOKED_AT,
  tallyhook_source_last_verified_seconds: (source) => source?.lastVerifiedS,
} as const satisfies Readonly<Record<string, (source: SourceLook | undefined) => Value>>;

function exposeGauges({ metrics: { gauge }, sources }: LooksParts, look: () => Promise<Looks>): void {
  // NaN while the database cannot be reached: an error would hide the other metrics, and an old look would be wrong.
  const known = async (read: (looks: Looks) => Value) =>
    (await look().then(read, () => undefined)) ?? Number.NaN;
  const each = <Label extends string>(
    label: Label,
    values: readonly string[],
    read: (looks: Looks, value: string) => Value,
  ) =>
    Promise.all(
      values.map(async (value) => ({
        labels: { [label]: value } as Record<Label, string>,
        value: await known((looks) => read(looks, value)),
      })),
    );

  for (const [name, read] of entriesOf(VALUES)) gauge(name, () => known(read));
  for (const [name, read] of entriesOf(OF_SOURCES)) {
    const ofSource = (looks: Looks, asked: string) =>
      read(looks.sources.find(({ source }) => source === asked));
    gauge(name, () => each('source', sources(), ofSource));
  }
  gauge('tallyhook_table_bytes', () =>
    each('table', TABLES, ({ tables }, name) => tables.find(({ table }) => table === name)?.bytes),
  );
  gauge('tallyhook_partitions_ahead', () =>
    each(
      'table',
      PARTITIONED,
      ({ partitions }, name) => partitions.find(({ table }) => table === name)?.daysAhead,
    ),
  );
}

const entriesOf = <Table extends object>(table: Table) =>
  Object.entries(table) as [keyof Table, Table[keyof Table]][];
