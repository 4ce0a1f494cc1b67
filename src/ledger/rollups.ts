// Statistics as counts: one row a minute, source, result and bucket of time, for answers to deliveries and for
// publications. They hold what leaves no delivery too, such as a 503. Several replicas add to the same rows. After two
// days they are added up to hours.
//
// Buckets are spaced evenly on a logarithmic scale, four to a doubling. A bucket stands for its middle, so that a
// percentile read from them is wrong by 9.1 % at most, whatever the distribution (the square root of 2^(1/4)).

import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Logger } from 'pino';
import type { DatabaseConnection, Statement } from './database.ts';
import type { Database, PublicationResult } from './tables.ts';
import { createTally, FLUSH_INTERVAL_MS } from './tally.ts';

export type Measure = 'answer' | 'lag';

export type Rollups = {
  /** One answer to a delivery. `outcome` is `unavailable` for what left none. */
  readonly answered: (source: string, outcome: string, answerMs: number) => void;
  /** One publish attempt. `lagMs` is the time from the event's acceptance to its confirm; null unless confirmed. */
  readonly published: (source: string, result: PublicationResult, lagMs: number | null) => void;
  /** Writes what is there and stops. */
  readonly close: () => Promise<void>;
};

type Count = {
  readonly slot: number;
  readonly measure: Measure;
  readonly source: string;
  readonly result: string;
  readonly bucket: number;
  count: number;
};

/** For a time that was not measured. */
export const NO_TIME_BUCKET = 0;
/** All that is shorter is in the first bucket: nothing that we do takes less. */
export const SHORTEST_MS = 0.1;
export const BUCKETS_PER_DOUBLING = 4;
/** Of 13 days: nobody tells longer lags apart. */
export const LAST_BUCKET = 135;
/**
 * Rows in memory. Some 60 a source come together between two flushes, so this is some hours' worth while Postgres is
 * away, at about 200 bytes each.
 */
const ROWS_MAX = 20_000;

/** So long, at least, counts are kept by the minute. */
export const MINUTES_KEPT_HOURS = 48;

/** Bucket n holds what is longer than SHORTEST_MS times 2^((n-2)/4), up to 2^((n-1)/4) times. */
export function bucketOf(ms: number): number {
  if (!(ms > SHORTEST_MS)) return 1;
  const bucket = 1 + Math.ceil(BUCKETS_PER_DOUBLING * Math.log2(ms / SHORTEST_MS));
  return Math.min(bucket, LAST_BUCKET);
}

/** The middle of the bucket on the logarithmic scale. */
export function bucketMs(bucket: number): number {
  if (bucket <= 1) return SHORTEST_MS;
  return SHORTEST_MS * 2 ** ((bucket - 1.5) / BUCKETS_PER_DOUBLING);
}

/**
 * Found by the primary key and taken in its order, or two replicas could deadlock. Times are the database's: a row says
 * how long ago it was counted. The counts of one minute may come in several rows, hence the sum.
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
  /** See `createTally`. */
  firstFlushMs?: number;
  log: Logger;
}): Rollups {
  const { connection, now, log } = options;
  const tally = createTally<Count>({
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
    tally.add(`${slot} ${measure} ${source} ${result} ${bucket}`, {
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
    close: tally.close,
  };
}

async function addRollups(
  connection: DatabaseConnection,
  rows: readonly Count[],
  nowMs: number,
): Promise<void> {
  // Of a slot that is not over yet, the middle may lie ahead.
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

/** In UTC: the hours of a session's time zone may begin at half past. */
const hourOf = (time: RawBuilder<unknown>) =>
  sql`date_bin('1 hour', ${time}, timestamptz '1970-01-01 00:00:00+00')`;

/**
 * Adds up to hours what is older than MINUTES_KEPT_HOURS: the oldest rows, at most `limit`, so that no call takes longer than
 * a statement may. An hour may come in several calls, since counts are added. One replica at a time, or two could
 * deadlock over the same hours.
 * @returns how many rows of minutes are gone.
 */
export async function coarsenRollups(db: Kysely<Database>, limit: number): Promise<number> {
  // The oldest by the primary key, and the hours by theirs.
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
