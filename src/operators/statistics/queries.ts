// Reads statistics from the rollups, by step of time and source, and in all: deliveries by outcome, answer times, publications,
// lag. They include answers that leave no delivery (503), up to the last flush of each replica. The deliveries are the exact
// record.

import { type Kysely, type RawBuilder, sql } from 'kysely';
import {
  bucketMs,
  type Database,
  type DatabaseConnection,
  NO_TIME_BUCKET,
  readSnapshot,
} from '../../ledger/index.ts';

import { TOGETHER } from './contract.ts';

/** Whole minutes; whole hours if it begins more than MINUTES_KEPT_HOURS ago. `to` is exclusive. */
export type TimeRange = { readonly from: Date; readonly to: Date };

export type StatsRange = TimeRange & {
  /** In seconds. Both ends are a multiple of it since the epoch. */
  readonly stepS: number;
};

export type Percentiles = { readonly p50: number; readonly p90: number; readonly p99: number };

export type Figures = {
  /** By outcome, and `unavailable` for 503. */
  readonly deliveries: Readonly<Record<string, number>>;
  readonly answerMs: Percentiles | null;
  /** By result. */
  readonly publications: Readonly<Record<string, number>>;
  readonly lagMs: Percentiles | null;
};

export type StatsStep = Figures & { readonly at: Date; readonly source: string };

/** Steps of a minute of three sources over four days; about 6 MB of JSON. */
const STEPS_MAX = 20_000;

type Row = {
  at: Date;
  source: string;
  deliveries: Record<string, number> | null;
  publications: Record<string, number> | null;
  answer_p50: number | null;
  answer_p90: number | null;
  answer_p99: number | null;
  lag_p50: number | null;
  lag_p90: number | null;
  lag_p99: number | null;
};

const percentile = (measure: 'answer' | 'lag', share: number) =>
  sql`min(bucket) filter (where measure = ${sql.lit(measure)} and up_to >= total * ${sql.lit(share)}::float8)`;

/** `steps` is undefined if there are more than STEPS_MAX. */
export type Statistics = {
  readonly steps: StatsStep[] | undefined;
  readonly total: Figures;
  readonly waits: readonly WaitsStep[];
};

/** The most in a step. */
export type WaitsStep = {
  readonly at: Date;
  readonly pending: number;
  readonly returned: number;
  readonly parked: number;
  readonly quarantined: number;
  readonly oldest_pending_s: number;
};

/**
 * The steps and the total are of one moment: replicas write counts between two statements. `sources`: null for all. `together`: a
 * step has one item, with the percentiles of all its sources.
 */
export function readStatistics(
  { db }: DatabaseConnection,
  {
    steps,
    total,
    together = false,
  }: { readonly steps: StatsRange; readonly total: TimeRange; readonly together?: boolean },
  sources: readonly string[] | null,
): Promise<Statistics> {
  return readSnapshot(db, async (trx) => ({
    steps: await readSteps(trx, steps, sources, together),
    total: await readTotal(trx, total, sources),
    waits: sources === null ? await readWaits(trx, steps) : [],
  }));
}

/** By the primary key. Of all sources alone: the watch counts no single ones. */
async function readWaits(db: Kysely<Database>, { from, to, stepS }: StatsRange): Promise<WaitsStep[]> {
  const { rows } = await sql<WaitsStep>`
    select ${stepOf(sql`minute`, stepS)} as at, max(pending) as pending, max(returned) as returned, max(parked) as parked,
      max(quarantined) as quarantined, max(oldest_pending_s) as oldest_pending_s
    from waits where minute >= ${from} and minute < ${to} group by 1 order by 1`.execute(db);
  return rows;
}

/** When the step of `at` begins. */
const stepOf = (at: RawBuilder<unknown>, stepS: number) =>
  sql`date_bin(make_interval(secs => ${stepS}::int), ${at}, timestamptz '1970-01-01 00:00:00+00')`;

/** Those in which something happened, in order of time and source. */
async function readSteps(
  db: Kysely<Database>,
  { from, to, stepS }: StatsRange,
  sources: readonly string[] | null,
  together: boolean,
): Promise<StatsStep[] | undefined> {
  const rows = await readRows(db, { from, to }, sources, {
    at: stepOf(sql`begin`, stepS),
    source: together ? sql`${TOGETHER}::text` : sql`source`,
  });
  return rows.length > STEPS_MAX ? undefined : rows.map(toStep);
}

/** Of the whole range and all the sources as one: percentiles are read from the sums of all buckets. */
async function readTotal(
  db: Kysely<Database>,
  { from, to }: TimeRange,
  sources: readonly string[] | null,
): Promise<Figures> {
  const all = { at: sql`${from}::timestamptz`, source: sql`''::text` };
  const [row] = await readRows(db, { from, to }, sources, all);
  return row === undefined ? NOTHING : toFigures(row);
}

const NOTHING: Figures = { deliveries: {}, answerMs: null, publications: {}, lagMs: null };

/** What the counts are grouped by: of a row's `begin`, and of its `source`. */
type Groups = { readonly at: RawBuilder<unknown>; readonly source: RawBuilder<unknown> };

async function readRows(
  db: Kysely<Database>,
  { from, to }: TimeRange,
  sources: readonly string[] | null,
  by: Groups,
): Promise<Row[]> {
  // Reads one range of each primary key, which begins with the time. No count is in both tables. Sums are doubles: faster
  // than the numeric that Postgres makes of a sum of bigints, and exact up to 2^53.
  //
  // - `counted`: the counts of both tables by step, source, measure, result and bucket of time.
  // - `by_result`: the counts of each step by outcome or result, as two JSON objects.
  // - `by_bucket`: for each bucket, how many of its step are in it or in a faster one (`up_to`), and how many in all.
  // - `percentiles`: the first bucket that reaches the share. Of 200 answers, the p90 is the bucket where `up_to` reaches 180.
  const { rows } = await sql<Row>`
    with counted as materialized (
      select ${by.at} as at, ${by.source} as source, measure, result, bucket, sum(count::float8) as count
      from (
        select minute as begin, source, measure, result, bucket, count from rollups
        where minute >= ${from} and minute < ${to}
        union all
        select hour, source, measure, result, bucket, count from rollups_hourly
        where hour >= ${from} and hour < ${to}
      ) as counts
      where ${sources}::text[] is null or source = any(${sources}::text[])
      group by 1, 2, 3, 4, 5
    ),
    by_result as (
      select at, source,
             jsonb_object_agg(result, count) filter (where measure = 'answer') as deliveries,
             jsonb_object_agg(result, count) filter (where measure = 'lag') as publications
      from (
        select at, source, measure, result, sum(count) as count from counted group by 1, 2, 3, 4
      ) as results
      group by 1, 2
    ),
    by_bucket as (
      select at, source, measure, bucket,
             sum(count) over (partition by at, source, measure order by bucket) as up_to,
             sum(count) over (partition by at, source, measure) as total
      from (
        select at, source, measure, bucket, sum(count) as count
        from counted where bucket <> ${sql.lit(NO_TIME_BUCKET)} group by 1, 2, 3, 4
      ) as buckets
    ),
    percentiles as (
      select at, source,
             ${percentile('answer', 0.5)} as answer_p50, ${percentile('answer', 0.9)} as answer_p90,
             ${percentile('answer', 0.99)} as answer_p99,
             ${percentile('lag', 0.5)} as lag_p50, ${percentile('lag', 0.9)} as lag_p90,
             ${percentile('lag', 0.99)} as lag_p99
      from by_bucket group by 1, 2
    )
    select * from by_result left join percentiles using (at, source)
    order by at, source limit ${sql.lit(STEPS_MAX + 1)}`.execute(db);
  return rows;
}

const toStep = (row: Row): StatsStep => ({ at: row.at, source: row.source, ...toFigures(row) });

function toFigures(row: Row): Figures {
  return {
    deliveries: row.deliveries ?? {},
    answerMs: toPercentiles(row.answer_p50, row.answer_p90, row.answer_p99),
    publications: row.publications ?? {},
    lagMs: toPercentiles(row.lag_p50, row.lag_p90, row.lag_p99),
  };
}

/** All three are null, or none. */
function toPercentiles(p50: number | null, p90: number | null, p99: number | null): Percentiles | null {
  if (p50 === null || p90 === null || p99 === null) return null;
  return { p50: shownMs(p50), p90: shownMs(p90), p99: shownMs(p99) };
}

/** Three digits, since a bucket is no more exact. */
const shownMs = (bucket: number) => Number(bucketMs(bucket).toPrecision(3));
