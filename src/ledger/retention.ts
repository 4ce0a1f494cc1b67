// What ages row by row: found oldest first by an index, and deleted in slices. Each slice is a short transaction of its
// own that holds no lock which a delivery needs, so however much there is to delete, nothing waits for it, and what was
// deleted stays so when a later slice fails. What ages by the day is dropped as a partition.

import { type RawBuilder, sql } from 'kysely';
import type { DatabaseConnection } from './database.ts';
import { coarsenRollups } from './rollups.ts';
import type { Database } from './tables.ts';

/** Deletes, or adds up, the oldest rows, at most so many. Returns of how many; 0 when none is left that is old enough. */
export type Aging = {
  readonly name: string;
  readonly slice: (db: DatabaseConnection['db'], options: { retentionDays: number }) => Promise<number>;
};

/** Some 20 ms of the database, far from any statement time-out on a disk a hundred times as slow. */
export const SLICE_ROWS = 2_000;
/** Each takes up to a thousand replay_skips with it. */
const SLICE_REPLAYS = 10;
/** A run deletes up to 200,000 rows of a kind; then it is another kind's turn, and the rest is the next run's. */
const SLICES_PER_RUN = 100;

/** Any constant of ours will do: of each kind, one replica at a time deletes. */
const RETENTION_LOCK = 7_461_194;

/** `rows` are where to look, oldest first, by the index named beside each; `isOld` says which of them may go. */
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
      // A row that changes meanwhile is judged again: what is said of it stands in the outer condition, too.
      const { numAffectedRows } = await sql`
        delete from ${sql.table(table)}
        where ctid = any(array(select ctid from ${sql.table(table)} ${rows(before)} limit ${sliceRows}))
          and ${isOld(before)}`.execute(db);
      return Number(numAffectedRows ?? 0);
    },
  };
}

/** By a time that an index begins with. `limit` is where it is not the retention that counts. */
function byTime(name: string, table: keyof Database, column: string, limit?: RawBuilder<Date>): Aging {
  const isOld = (before: RawBuilder<Date>) => sql`${sql.ref(column)} < ${limit ?? before}`;
  const rows = (before: RawBuilder<Date>) => sql`where ${isOld(before)} order by ${sql.ref(column)}`;
  return deleting({ name, table, rows, isOld });
}

export const AGING: readonly Aging[] = [
  // By outbox_waiting. Sequence and time grow together but for seconds: where the oldest by sequence are young, so are
  // the rest, and these are not read. Copies are of a replay that is paused until its queue is there.
  deleting({
    name: 'returned events',
    table: 'outbox',
    rows: () => sql`where state = 'returned' and replay_id is null order by sequence`,
    isOld: (before) => sql`state = 'returned' and replay_id is null and recorded_at < ${before}`,
  }),
  // By replays_time; and what they left out.
  deleting({
    name: 'replays',
    table: 'replays',
    rows: (before) => sql`where created_at < ${before} and finished_at < ${before} order by created_at, id`,
    isOld: (before) => sql`finished_at < ${before}`,
    sliceRows: SLICE_REPLAYS,
  }),
  byTime('refusals', 'refusals', 'minute'),
  byTime('addresses of refusals', 'refusal_addresses', 'minute'),
  byTime('counts of minutes', 'rollups', 'minute'),
  byTime('counts of hours', 'rollups_hourly', 'hour'),
  { name: 'minutes to hours', slice: (db) => coarsenRollups(db, SLICE_ROWS) },
  // What was not seen since: no body is left to look at. A few hundred rows a source, without an index of its own.
  byTime('drift', 'drift', 'last_seen_at'),
  // By idempotency_keys_time. Repeated requests come within minutes; the API promises a day.
  byTime('idempotency keys', 'idempotency_keys', 'created_at', sql<Date>`now() - interval '24 hours'`),
];

/**
 * Slices of one kind until nothing old is left, or for as much as a run may take.
 * @returns whether nothing is left, or another replica is at it.
 */
export async function ageOut(
  { db }: DatabaseConnection,
  { name, slice }: Aging,
  options: { retentionDays: number; signal?: AbortSignal },
): Promise<boolean> {
  for (let slices = 0; slices < SLICES_PER_RUN && !options.signal?.aborted; slices++) {
    const isLast = await db.transaction().execute(async (trx) => {
      const { rows } = await sql<{ isOurs: boolean }>`
        select pg_try_advisory_xact_lock(${RETENTION_LOCK}, hashtext(${name})) as "isOurs"`.execute(trx);
      return !rows[0]?.isOurs || (await slice(trx, options)) === 0;
    });
    if (isLast) return true;
  }
  return false;
}
