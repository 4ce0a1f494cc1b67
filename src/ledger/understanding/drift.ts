// Unknown fields of accepted events, and unknown statuses of quarantined deliveries.
// Keeps names, types and the id of one such delivery, and never a value, so viewers who may not see bodies may see this.

import type { Logger } from 'pino';
import { maskInvisible } from '../../base/text/invisible-characters.ts';
import type { DatabaseConnection, Statement } from '../sessions/database.ts';
import { createCounter } from '../counts/counter.ts';

export type Drift = {
  readonly kind: 'field' | 'status';
  /** The status of the body; for an unknown status that status itself. */
  readonly status: string;
  /** The field, or the status itself. */
  readonly name: string;
  /** As JSON Schema calls it. */
  readonly valueType: string;
};

export type DriftLog = {
  /** Counts in memory. The body of the delivery must be kept. */
  readonly notice: (source: string, deliveryId: string, drift: readonly Drift[]) => void;
  /** Writes the last counts and stops. */
  readonly close: () => Promise<void>;
};

export type DriftCount = Drift & { source: string; count: number; valueType: string; deliveryId: string };

/**
 * The most fields of one source, and the most statuses, in memory and in the ledger. Without it a sender that invents field
 * names would fill the table. Statuses have a limit of their own, so that such names cannot hide a new status.
 */
export const DRIFT_NAMES_PER_SOURCE = 200;
const NAME_MAX_LENGTH = 128;

/**
 * Rows are taken in the order of the primary key, or two replicas could deadlock. That key also finds the names that are known
 * already, and counts those of a source and kind. Two replicas at once may both pass the limit a little.
 */
const ADD_DRIFT: Statement = {
  name: 'add-drift',
  text: `
insert into drift as d (
  source, kind, status, name, value_type, count, first_seen_at, last_seen_at, sample_delivery_id
)
select i.source, i.kind, i.status, i.name, i.value_type, i.count, now(), now(), i.delivery_id
from (
  select *, row_number() over (partition by source, kind, is_known order by status, name) as number
  from (
    select *, exists (
      select from drift k
      where k.source = t.source and k.kind = t.kind and k.status = t.status and k.name = t.name
    ) as is_known
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::uuid[])
      as t (source, kind, status, name, value_type, count, delivery_id)
  ) as noticed
) as i
where i.is_known or (select count(*) from drift k where k.source = i.source and k.kind = i.kind) + i.number <= $8
order by i.source collate "C", i.kind, i.status, i.name
on conflict (source, kind, status, name) do update set
  count = d.count + excluded.count,
  value_type = excluded.value_type,
  last_seen_at = greatest(d.last_seen_at, excluded.last_seen_at),
  sample_delivery_id = excluded.sample_delivery_id`,
};

export function createDriftLog(options: {
  addDrift: (rows: readonly DriftCount[]) => Promise<void>;
  /** See `createCounter`. */
  firstFlushMs?: number;
  log: Logger;
}): DriftLog {
  const { addDrift: write, log } = options;
  const counter = createCounter<DriftCount>({
    name: 'drift',
    merge: (into, from) => {
      into.count += from.count;
      into.valueType = from.valueType;
      into.deliveryId = from.deliveryId; // the newest, since the body of an old one is dropped first
    },
    write,
    rowsPerGroup: DRIFT_NAMES_PER_SOURCE,
    groupOf: ({ source, kind }) => `${source} ${kind}`,
    firstFlushMs: options.firstFlushMs,
    log,
  });
  return {
    notice: (source, deliveryId, drift) => {
      for (const { kind, status, name, valueType } of drift) {
        const shown = showable(name);
        counter.add([source, kind, status, shown].join('\0'), {
          source,
          kind,
          status,
          name: shown,
          valueType,
          deliveryId,
          count: 1,
        });
      }
    },
    close: counter.close,
  };
}

/** Adds the counts to the rows. Several replicas add to the same ones. */
export async function addDrift(connection: DatabaseConnection, rows: readonly DriftCount[]): Promise<void> {
  await connection.execute(ADD_DRIFT, [
    rows.map(({ source }) => source),
    rows.map(({ kind }) => kind),
    rows.map(({ status }) => status),
    rows.map(({ name }) => name),
    rows.map(({ valueType }) => valueType),
    rows.map(({ count }) => String(count)),
    rows.map(({ deliveryId }) => deliveryId),
    DRIFT_NAMES_PER_SOURCE,
  ]);
}

/** A field's name may be any text, and Postgres takes no NUL. */
function showable(name: string): string {
  return maskInvisible(name.slice(0, NAME_MAX_LENGTH));
}
