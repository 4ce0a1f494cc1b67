// Deletes rows that are too old, the oldest first, in slices (slices.ts). A slice takes no lock which a delivery needs. So nothing
// waits, however much there is to delete.
// Tables with daily partitions are not deleted from: their old partitions are dropped (drops.ts).

import { type RawBuilder, type Transaction, sql } from 'kysely';
import type { DatabaseConnection } from '../sessions/database.ts';
import { coarsenRollups } from '../counts/rollups.ts';
import { inSlices } from './slices.ts';
import type { Database } from '../schema/tables.ts';

/** One kind of rows that are deleted when old. */
export type Aging = {
  readonly name: string;
  /** Deletes or sums up the oldest rows, at most one slice of them. Returns how many; 0 if no more are old enough. */
  readonly slice: (db: DatabaseConnection['db'], options: { retentionDays: number }) => Promise<number>;
};

/** About 20 ms of work for the database: far from the statement time-out even on a disk a hundred times slower. */
export const SLICE_ROWS = 2_000;
/** Fewer, since each replay has up to a thousand rows of replay_skips, which are deleted with it. */
const SLICE_REPLAYS = 10;

/** An arbitrary constant. Under this advisory lock, one replica at a time deletes rows of a kind. */
const RETENTION_LOCK = 7_461_194;

/** `rows` finds candidates, oldest first, by the index that is named beside each use; `isOld` decides which may be deleted. */
function deleting(options: {
  name: string;
  table: keyof Database;
  rows: (before: RawBuilder<Date>) => RawBuilder<unknown>;
  isOld: (before: RawBuilder<Date>) => RawBuilder<unknown>;
  sliceRows?: number;
}): Aging {
  const { name, table, rows, isOld, sliceRows = SLICE_ROWS } = options;
  return {
    name,
    slice: async (db, { retentionDays }) => {
      const before = sql<Date>`now() - make_interval(days => ${retentionDays})`;
      // `isOld` is in the outer condition, so that Postgres checks it again for a row that another transaction has changed.
      const { numAffectedRows } = await sql`
        delete from ${sql.table(table)}
        where ctid = any(array(select ctid from ${sql.table(table)} ${rows(before)} limit ${sliceRows}))
          and ${isOld(before)}`.execute(db);
      return Number(numAffectedRows ?? 0);
    },
  };
}

/** Rows with a time, which is the first column of an index. `limit` replaces the retention. */
function byTime(name: string, table: keyof Database, column: string, limit?: RawBuilder<Date>): Aging {
  const isOld = (before: RawBuilder<Date>) => sql`${sql.ref(column)} < ${limit ?? before}`;
  const rows = (before: RawBuilder<Date>) => sql`where ${isOld(before)} order by ${sql.ref(column)}`;
  return deleting({ name, table, rows, isOld });
}

/** Replicas that were killed stay for an hour, so that an operator sees which ones are missing. */
const REPLICAS_MAX = 200;
const isGone = sql`(seen_at < now() - interval '1 hour' or id not in (
  select id from replicas order by seen_at desc limit ${sql.lit(REPLICAS_MAX)}))`;

export const AGING: readonly Aging[] = [
  // By outbox_held_waiting. Times grow with sequences, except for seconds: if the first slice by sequence is too young, so are
  // the rest, and they are not read. No event waits behind a returned one, so no job is to be released.
  // Returned copies stay: their replay is paused until its queue exists.
  deleting({
    name: 'returned events',
    table: 'outbox_held',
    rows: () => sql`where state = 'returned' order by sequence`,
    isOld: (before) => sql`state = 'returned' and recorded_at < ${before}`,
  }),
  // By replays_time. Their replay_skips are deleted with them.
  deleting({
    name: 'replays',
    table: 'replays',
    rows: (before) => sql`where created_at < ${before} and finished_at < ${before} order by created_at, id`,
    isOld: (before) => sql`finished_at < ${before}`,
    sliceRows: SLICE_REPLAYS,
  }),
  // By incidents_time. Their incident_messages are deleted with them.
  deleting({
    name: 'incidents',
    table: 'incidents',
    rows: (before) => sql`where began_at < ${before} and ended_at < ${before} order by began_at, id`,
    isOld: (before) => sql`ended_at < ${before}`,
  }),
  byTime('refusals', 'refusals', 'minute'),
  byTime('addresses of refusals', 'refusal_addresses', 'minute'),
  byTime('counts of minutes', 'rollups', 'minute'),
  byTime('counts of hours', 'rollups_hourly', 'hour'),
  byTime('what waited', 'waits', 'minute'),
  { name: 'minutes to hours', slice: (db) => coarsenRollups(db, SLICE_ROWS) },
  // Not seen within the retention, so no delivery with a body is left to show. A few hundred rows a source need no index.
  byTime('drift', 'drift', 'last_seen_at'),
  // By idempotency_keys_time. Requests are repeated within minutes; the API promises a day.
  byTime('idempotency keys', 'idempotency_keys', 'created_at', sql<Date>`now() - interval '24 hours'`),
  // Killed replicas. Also beyond a number: one that fails at each start leaves a row each time, and runs this at each start.
  deleting({ name: 'replicas', table: 'replicas', rows: () => sql`where ${isGone}`, isOld: () => isGone }),
];

/**
 * Deletes slices of one kind until no old row is left, up to a run's limit.
 * @returns true if nothing is left, or another replica is deleting this kind
 */
export function ageOut(
  connection: DatabaseConnection,
  { name, slice }: Aging,
  options: { retentionDays: number; signal?: AbortSignal },
): Promise<boolean> {
  const ourSlice = async (trx: Transaction<Database>) => {
    const { rows } = await sql<{ isOurs: boolean }>`
      select pg_try_advisory_xact_lock(${RETENTION_LOCK}, hashtext(${name})) as "isOurs"`.execute(trx);
    return rows[0]?.isOurs ? slice(trx, options) : 0;
  };
  return inSlices(connection, ourSlice, options.signal);
}
