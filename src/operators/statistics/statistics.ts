// Statistics from the rollups: deliveries by outcome, answer times, publications and lag, a step of time and source.
// They count what leaves no delivery too (503), up to the last flush of each replica; the deliveries are the exact record.

import { sql } from 'kysely';
import { type DatabaseConnection, bucketMs, NO_TIME_BUCKET } from '../../ledger/index.ts';

export type StatsRange = {
  /** Both on a whole step since the epoch. `to` is not part of it. */
  readonly from: Date;
  readonly to: Date;
  /** Whole minutes; whole hours where the range begins more than MINUTES_KEPT_HOURS ago. */
  readonly stepS: number;
};

export type Percentiles = { readonly p50: number; readonly p90: number; readonly p99: number };

export type StatsStep = {
  readonly at: Date;
  readonly source: string;
  /** By outcome, and `unavailable` for 503. */
  readonly deliveries: Readonly<Record<string, number>>;
  readonly answerMs: Percentiles | null;
  /** By result. */
  readonly publications: Readonly<Record<string, number>>;
  readonly lagMs: Percentiles | null;
};

/** Three sources' steps of a minute over four days; about 6 MB of JSON. */
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

/**
 * Steps in which something happened, in order of time and source. `sources`: null for all.
 * @returns undefined when they would be more than STEPS_MAX
 */
export async function readStats(
  { db }: DatabaseConnection,
  { from, to, stepS }: StatsRange,
  sources: readonly string[] | null,
): Promise<StatsStep[] | undefined> {
  // Reads one range of each primary key, which begins with the time; what is in one is not in the other. Sums are
  // doubles, which add up faster than the numeric that a sum of bigints is, and are exact as far as anybody counts.
  const { rows } = await sql<Row>`
    with counted as materialized (
      select date_bin(make_interval(secs => ${stepS}::int), begin, timestamptz '1970-01-01 00:00:00+00') as at,
             source, measure, result, bucket, sum(count::float8) as count
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
  return rows.length > STEPS_MAX ? undefined : rows.map(toStep);
}

function toStep(row: Row): StatsStep {
  return {
    at: row.at,
    source: row.source,
    deliveries: row.deliveries ?? {},
    answerMs: toPercentiles(row.answer_p50, row.answer_p90, row.answer_p99),
    publications: row.publications ?? {},
    lagMs: toPercentiles(row.lag_p50, row.lag_p90, row.lag_p99),
  };
}

/** All three or none are there. */
function toPercentiles(p50: number | null, p90: number | null, p99: number | null): Percentiles | null {
  if (p50 === null || p90 === null || p99 === null) return null;
  return { p50: shownMs(p50), p90: shownMs(p90), p99: shownMs(p99) };
}

/** More digits would claim more than the buckets know. */
const shownMs = (bucket: number) => Number(bucketMs(bucket).toPrecision(3));
