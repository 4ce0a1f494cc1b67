// Statistics: how many answers to deliveries and how many publications there were, with one row for each minute, source, result
// and bucket of time. They include answers that leave no delivery, such as a 503. Several replicas add to the same rows. After
// two days minutes are summed up to hours.
//
// A bucket is a range of milliseconds. Times double every four buckets, and a bucket counts as its logarithmic middle. So a
// percentile that is read from them is wrong by 9.1 % at most, whatever the distribution (the square root of 2^(1/4)).
// Example: 100 ms is in bucket 41, which is everything above 86.1 ms and up to 102.4 ms, and counts as 93.9 ms.

import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Logger } from 'pino';
import type { DatabaseConnection, Statement } from '../sessions/database.ts';
import type { Database, Measure, PublicationResult } from '../schema/tables.ts';
import { createCounter, FLUSH_INTERVAL_MS } from './counter.ts';

export type Rollups = {
  /** One answer to a delivery. `outcome` is `unavailable` if no delivery was recorded. */
  readonly answered: (source: string, outcome: string, answerMs: number) => void;
  /** One publish attempt. `lagMs` is the time from the event's acceptance to the confirm, or null if not confirmed. */
  readonly published: (source: string, result: PublicationResult, lagMs: number | null) => void;
  /** Writes the last counts and stops. */
  readonly close: () => Promise<void>;
};

type Count = {
  /** The flush interval in which it was counted. */
  readonly slot: number;
  readonly measure: Measure;
  readonly source: string;
  readonly result: string;
  readonly bucket: number;
  count: number;
};

/** For counts without a time. */
export const NO_TIME_BUCKET = 0;
/** The first bucket has all shorter times, of which there are none in practice. */
export const SHORTEST_MS = 0.1;
export const BUCKETS_PER_DOUBLING = 4;
/** About 13 days: all longer lags count as equal. */
export const LAST_BUCKET = 135;
/**
 * Rows in memory, of about 200 bytes. A source adds some 60 between two flushes, so this is enough for hours without Postgres.
 */
const ROWS_MAX = 20_000;

/** Counts are kept by the minute for at least this long. */
export const MINUTES_KEPT_HOURS = 48;

/** Bucket n has the times above SHORTEST_MS × 2^((n-2)/4) and up to SHORTEST_MS × 2^((n-1)/4). */
export function bucketOf(ms: number): number {
  if (!(ms > SHORTEST_MS)) return 1;
  const bucket = 1 + Math.ceil(BUCKETS_PER_DOUBLING * Math.log2(ms / SHORTEST_MS));
  return Math.min(bucket, LAST_BUCKET);
}

/** The time that a bucket counts as: its middle on the logarithmic scale. */
export function bucketMs(bucket: number): number {
  if (bucket <= 1) return SHORTEST_MS;
  return SHORTEST_MS * 2 ** ((bucket - 1.5) / BUCKETS_PER_DOUBLING);
}

/**
 * Adds counts to the rows of their minutes. A count comes with its age in seconds, since the minute is the database's:
 * counted 45 s ago and written at 12:00:30, it belongs to 11:59. The counts of one minute may come in several rows, hence the
 * sum. Rows are locked in the order of the primary key, since two replicas could deadlock otherwise.
 */
const ADD_ROLLUPS: Statement = {
  name: 'add-rollups',
  text: `
insert into rollups as r (minute, measure, source, result, bucket, count)
select date_trunc('minute', now() - make_interval(secs => age_s)) as minute, measure, source, result, bucket, sum(count)
from unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::bigint[])
  as t (age_s, measure, source, result, bucket, count)
group by 1, 2, 3, 4, 5
order by 1, 2, source collate "C", 4, 5
on conflict (minute, measure, source, result, bucket) do update set count = r.count + excluded.count`,
};

export function createRollups(options: {
  connection: DatabaseConnection;
  /** Monotonic milliseconds. */
  now: () => number;
  /** See `createCounter`. */
  firstFlushMs?: number;
  log: Logger;
}): Rollups {
  const { connection, now, log } = options;
  const counter = createCounter<Count>({
    name: 'rollups',
    merge: (into, from) => {
      into.count += from.count;
    },
    write: (rows) => addRollups(connection, rows, now()),
    rowsPerGroup: ROWS_MAX,
    groupOf: () => '',
    firstFlushMs: options.firstFlushMs,
    log,
  });

  function count(measure: Measure, source: string, result: string, bucket: number): void {
    const slot = Math.floor(now() / FLUSH_INTERVAL_MS);
    counter.add(`${slot} ${measure} ${source} ${result} ${bucket}`, {
      slot,
      measure,
      source,
      result,
      bucket,
      count: 1,
    });
  }

  return {
    answered: (source, outcome, answerMs) => count('answer', source, outcome, bucketOf(answerMs)),
    published: (source, result, lagMs) =>
      count('lag', source, result, lagMs === null ? NO_TIME_BUCKET : bucketOf(lagMs)),
    close: counter.close,
  };
}

async function addRollups(
  connection: DatabaseConnection,
  rows: readonly Count[],
  nowMs: number,
): Promise<void> {
  // Counts age from the middle of their slot. The present slot's middle may be in the future: then the age is 0.
  const ageS = (slot: number) => Math.max(0, Math.round((nowMs - (slot + 0.5) * FLUSH_INTERVAL_MS) / 1_000));
  await connection.execute(ADD_ROLLUPS, [
    rows.map(({ slot }) => ageS(slot)),
    rows.map(({ measure }) => measure),
    rows.map(({ source }) => source),
    rows.map(({ result }) => result),
    rows.map(({ bucket }) => bucket),
    rows.map(({ count }) => String(count)),
  ]);
}

/** The hour in UTC: in some time zones hours begin at half past. */
const hourOf = (time: RawBuilder<unknown>) =>
  sql`date_bin('1 hour', ${time}, timestamptz '1970-01-01 00:00:00+00')`;

/**
 * Sums rows of minutes that are older than MINUTES_KEPT_HOURS up to hours: the oldest `limit` rows, so that a call stays within
 * the statement time-out. Several calls may add to one hour. One replica at a time may call it, since two could deadlock over
 * the same hours (upkeep/retention.ts ensures this).
 * @returns how many rows of minutes were moved.
 */
export async function coarsenRollups(db: Kysely<Database>, limit: number): Promise<number> {
  // `moved` deletes the oldest minutes, by the primary key, and `added` adds them to their hours, by the primary key of these.
  const { rows } = await sql<{ moved: number }>`
    with moved as (
      delete from rollups where ctid = any(array(
        select ctid from rollups
        where minute < ${hourOf(sql`now()`)} - make_interval(hours => ${sql.lit(MINUTES_KEPT_HOURS)})
        order by minute limit ${limit}
      ))
      returning *
    ),
    added as (
      insert into rollups_hourly as h (hour, measure, source, result, bucket, count)
      select ${hourOf(sql`minute`)}, measure, source, result, bucket, sum(count) from moved
      group by 1, 2, 3, 4, 5
      on conflict (hour, measure, source, result, bucket) do update set count = h.count + excluded.count
    )
    select count(*)::int as moved from moved`.execute(db);
  return rows[0]?.moved ?? 0;
}
