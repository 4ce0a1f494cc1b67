// What tells whether all is well, in one look: for the metrics, for the watch and for operators. Bounded: a look costs the same
// whatever the tables hold. Each statement reads a limited part of an index, or the catalog.

import { type Kysely, sql } from 'kysely';
import { STUCK_AFTER_S } from '../../base/time/stuck-after.ts';
import { type OutboxDepth, readOutboxDepth } from '../recording/outbox-depth.ts';
import type { Database } from '../schema/tables.ts';
import { PARTITIONED } from '../upkeep/partitions.ts';
import { type Part, readParts, TABLES } from './sizes.ts';

/** Counted up to LOOK_MAX. */
export type Counted = { readonly count: number; readonly isExact: boolean };

export type Looks = {
  /** When it was made, by the database's clock: milliseconds since 1970. */
  readonly atMs: number;
  readonly outbox: OutboxDepth;
  /** Deliveries that wait for an operator. */
  readonly quarantined: Counted;
  /** Received in the last hour. */
  readonly conflicts: Counted;
  /** As the list of jobs has them, where nothing else is asked for; of the last STUCK_DAYS alone. */
  readonly stuckJobs: Counted;
  /** With indexes, and with all partitions. */
  readonly tables: readonly { readonly table: string; readonly bytes: number }[];
  /** How many days after today have a partition, without a gap. -1: today has none. */
  readonly partitions: readonly { readonly table: string; readonly daysAhead: number }[];
  /** Also such as are configured no more, and `unknown`: who needs the configured ones alone leaves the others out. */
  readonly sources: readonly SourceLook[];
  readonly leases: readonly LeaseLook[];
};

export type SourceLook = {
  readonly source: string;
  /** Since a delivery of this source was verified, to some ten seconds. Null: never. */
  readonly lastVerifiedS: number | null;
  /**
   * Each secret that ever signed one, and since when it has signed none. An overdue secret is found from these: the sources' file,
   * which each replica has, says until when it should have been used (`overdueSecrets`). No replica need tell the others.
   */
  readonly secrets: readonly { readonly fingerprint: string; readonly lastMatchedS: number }[];
  /** In how many of the 24 hours up to then it had verified deliveries. */
  readonly hoursDelivered: number;
  /** Answered in the last 10 minutes. */
  readonly unauthorized10m: number;
  readonly deliveries10m: number;
};

export type LeaseLook = {
  readonly name: string;
  /** Since when its holder has had it without a gap. Null: it was given up. */
  readonly ageS: number | null;
  /** Since it ran out; negative while it is held. */
  readonly expiredS: number;
};

/** More would tell nobody more: that so many wait is what counts. Some 2 ms in memory. */
export const LOOK_MAX = 1_000;

/** Nobody can end a job whose sender never does: it must not hide for good that others are stuck. */
const STUCK_DAYS = 7;

/** A day, since a source may deliver by day alone. */
export const HOURS_LOOKED_AT = 24;

/** The condition on deliveries `t` that wait for an operator, as the predicate of deliveries_quarantine is. */
export const IN_QUARANTINE = sql`t.outcome = 'quarantined' and t.released_at is null and t.discarded_at is null`;

/** One after the other: a look takes one connection. */
export async function readLooks(db: Kysely<Database>): Promise<Looks> {
  const outbox = await readOutboxDepth(db, null);
  const waiting = await readWaiting(db);
  const parts = await readParts(db);
  const sources = await readSources(db);
  const leases = await readLeases(db);
  return { outbox, ...waiting, tables: bytesOf(parts), partitions: daysAheadOf(parts), sources, leases };
}

/** One more is read than is counted, to tell whether there are more. */
const limit = sql.lit(LOOK_MAX + 1);

/** By deliveries_quarantine, deliveries_outcome and jobs_status, each in its order. */
async function readWaiting(
  db: Kysely<Database>,
): Promise<Pick<Looks, 'atMs' | 'quarantined' | 'conflicts' | 'stuckJobs'>> {
  const { rows } = await sql<Readonly<Record<'atMs' | 'quarantined' | 'conflicts' | 'stuckJobs', number>>>`
    select extract(epoch from now())::float8 * 1000 as "atMs", quarantined, conflicts, "stuckJobs" from
      (select count(*)::int as quarantined from (
        select from deliveries t where ${IN_QUARANTINE} order by t.received_at, t.id limit ${limit}) q) q,
      (select count(*)::int as conflicts from (
        select from deliveries t where t.outcome = 'conflict' and t.received_at > now() - interval '1 hour'
        order by t.received_at limit ${limit}) c) c,
      (select count(*)::int as "stuckJobs" from (
        select from jobs t
        where t.last_status = 'processing' and t.first_seen_at > now() - make_interval(days => ${sql.lit(STUCK_DAYS)})
          and t.first_seen_at < now() - make_interval(secs => ${sql.lit(STUCK_AFTER_S)})
        order by t.first_seen_at limit ${limit}) j) j`.execute(db);
  const [row] = rows;
  // Aggregates without groups give one row, whatever they find.
  if (row === undefined) throw new Error('nothing was counted');
  return {
    atMs: row.atMs,
    quarantined: counted(row.quarantined),
    conflicts: counted(row.conflicts),
    stuckJobs: counted(row.stuckJobs),
  };
}

const counted = (found: number): Counted => ({
  count: Math.min(found, LOOK_MAX),
  isExact: found <= LOOK_MAX,
});

const bytesOf = (parts: readonly Part[]): Looks['tables'] =>
  TABLES.map((table) => ({
    table,
    bytes: parts
      .filter((part) => part.table === table)
      .reduce((sum, { bytes, indexBytes }) => sum + bytes + indexBytes, 0),
  }));

const daysAheadOf = (parts: readonly Part[]): Looks['partitions'] =>
  PARTITIONED.map((table) => {
    const days = new Set(parts.filter((part) => part.table === table).map(({ age }) => age));
    let daysAhead = -1;
    while (days.has(-(daysAhead + 1))) daysAhead += 1;
    return { table, daysAhead };
  });

/** Of deliveries by one secret in one hour. Only of a secret that sources share, more than the first one is read. */
const SHARED_MAX = 100;

/**
 * All of secret_matches, which has a row for each secret, and some minutes of the rollups by their primary key. Then for each hour and
 * secret one step in deliveries_secret. The rollups have the hours, too, but between the counts of all other sources.
 */
async function readSources(db: Kysely<Database>): Promise<SourceLook[]> {
  const { rows } = await sql<SourceLook>`
    with verified as (
      select source, max(last_matched_at) as last_at, json_agg(json_build_object(
          'fingerprint', fingerprint, 'lastMatchedS', extract(epoch from now() - last_matched_at)::float8
        ) order by fingerprint) as secrets
      from secret_matches group by source
    ),
    answered as (
      select source, sum(count)::float8 as deliveries,
        coalesce(sum(count) filter (where result = 'unauthorized'), 0)::float8 as unauthorized
      from rollups where minute >= date_trunc('minute', now()) - interval '10 minutes' and measure = 'answer'
      group by source
    )
    select source, extract(epoch from now() - v.last_at)::float8 as "lastVerifiedS", coalesce(v.secrets, '[]') as secrets,
      (select count(*)::int from generate_series(0, ${sql.lit(HOURS_LOOKED_AT - 1)}) as hour where exists (
        select from secret_matches m cross join lateral (
          select d.source from deliveries d
          where d.secret_fingerprint = m.fingerprint
            and d.received_at > v.last_at - make_interval(hours => hour + 1)
            and d.received_at <= v.last_at - make_interval(hours => hour)
          order by d.secret_fingerprint, d.received_at limit ${sql.lit(SHARED_MAX)}
        ) d
        where m.source = v.source and m.last_matched_at > v.last_at - make_interval(hours => ${sql.lit(HOURS_LOOKED_AT)}) and d.source = v.source
      )) as "hoursDelivered",
      coalesce(a.unauthorized, 0) as "unauthorized10m", coalesce(a.deliveries, 0) as "deliveries10m"
    from verified v full join answered a using (source)
    order by source`.execute(db);
  return rows;
}

/** All of it: a row for each kind of lease. */
async function readLeases(db: Kysely<Database>): Promise<LeaseLook[]> {
  const { rows } = await sql<LeaseLook>`
    select l.name, extract(epoch from clock_timestamp() - l.since)::float8 as "ageS",
      extract(epoch from clock_timestamp() - l.expires_at)::float8 as "expiredS"
    from relay_lease l order by l.name`.execute(db);
  return rows;
}
