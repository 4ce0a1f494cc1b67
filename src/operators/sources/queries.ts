// What is known of each source: its last delivery, its rates, when each of its secrets matched last, the fields and statuses
// that our schemas do not know, and where its refused deliveries come from. A source costs a few steps in indexes, however
// much it sent.

import { sql } from 'kysely';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { looseScan } from '../kernel/list/loose-scan.queries.ts';

/** A source as it is configured now. */
export type ConfiguredSource = { readonly name: string; readonly fingerprints: readonly string[] };

export type SecretUse = {
  readonly fingerprint: string;
  readonly configured: boolean;
  readonly lastMatchedAt: Date | null;
};

export type DriftReport = {
  readonly kind: 'field' | 'status';
  readonly name: string;
  readonly status: string;
  readonly valueType: string;
  readonly count: number;
  readonly firstSeenAt: Date;
  readonly lastSeenAt: Date;
  readonly sampleDeliveryId: string;
};

/** Refused deliveries of the last 24 hours. A count is never too high. */
export type RefusedAddress = { readonly address: string; readonly count: number };

export type SourceReport = {
  readonly source: string;
  readonly configured: boolean;
  readonly lastDeliveryAt: Date | null;
  /** Deliveries a minute. */
  readonly rates: { readonly last5m: number; readonly last1h: number; readonly last24h: number };
  /** Of the last 24 hours, by outcome. */
  readonly errors: Readonly<Record<string, number>>;
  readonly secrets: readonly SecretUse[];
  readonly drift: readonly DriftReport[];
  /** The busiest first. */
  readonly refusedAddresses: readonly RefusedAddress[];
};

/** Of a source: enough to see whether it is one, a few or many. */
const ADDRESSES_SHOWN = 10;

type Match = { source: string; fingerprint: string; at: Date };
type Counts = { source: string; last_5m: number; last_1h: number; last_24h: number };

/** The sources that are configured or in the ledger, by name. `visible`: null for all. */
export async function readSources(
  connection: DatabaseConnection,
  configured: readonly ConfiguredSource[],
  visible: readonly string[] | null,
): Promise<SourceReport[]> {
  // One after the other, so that one request does not take all connections of the operators.
  const heard = await readLastDeliveries(connection);
  const refused = await readRefusedAddresses(connection);
  const names = [...new Set([...configured.map(({ name }) => name), ...heard.keys(), ...refused.keys()])]
    .filter((name) => visible === null || visible.includes(name))
    .toSorted();
  const rates = await readRates(connection, names);
  const errors = await readErrors(connection, names);
  const matches = await readMatches(connection, names);
  const drift = await readDrift(connection, names);
  return names.map((source) => {
    const known = configured.find(({ name }) => name === source);
    return {
      source,
      configured: known !== undefined,
      lastDeliveryAt: heard.get(source) ?? null,
      rates: rates.get(source) ?? { last5m: 0, last1h: 0, last24h: 0 },
      errors: errors.get(source) ?? {},
      secrets: secretsOf(known?.fingerprints ?? [], matches.get(source) ?? []),
      drift: drift.get(source) ?? [],
      refusedAddresses: refused.get(source) ?? [],
    };
  });
}

/**
 * Each source's newest delivery, by index deliveries_source. Asked for as the greatest pair (source, time) of the source:
 * asked for the newest row where the source is equal, the planner may read all rows by their time, back to the last one
 * of a source that has been silent for long.
 */
async function readLastDeliveries({ db }: DatabaseConnection): Promise<Map<string, Date>> {
  const { rows } = await sql<{ source: string; at: Date }>`
    select k.source, newest.at from (${looseScan('deliveries', 'source')}) k (source)
    cross join lateral (
      select d.received_at as at from deliveries d
      where (d.source, d.received_at) <= (k.source, 'infinity')
      order by d.source desc, d.received_at desc limit 1
    ) as newest`.execute(db);
  return new Map(rows.map(({ source, at }) => [source, at]));
}

const since = (span: string) => sql`(date_trunc('minute', now()) - interval ${sql.lit(span)})`;
const rate = (span: string) => sql`(
  coalesce(sum(count::float8) filter (where minute >= ${since(span)}), 0) * 60 / extract(epoch from now() - ${since(span)})
)::float8`;
const shown = (perMinute: number) => Math.round(perMinute * 1_000) / 1_000;

/** From the rollups of a day, by the primary key: whole minutes, and the part of the present one that has passed. */
async function readRates(
  { db }: DatabaseConnection,
  names: readonly string[],
): Promise<Map<string, SourceReport['rates']>> {
  const { rows } = await sql<Counts>`
    select source, ${rate('5 minutes')} as last_5m, ${rate('1 hour')} as last_1h, ${rate('24 hours')} as last_24h
    from rollups
    where minute >= ${since('24 hours')} and measure = 'answer' and source = any(${names}::text[])
    group by source`.execute(db);
  return new Map(
    rows.map((row) => [
      row.source,
      { last5m: shown(row.last_5m), last1h: shown(row.last_1h), last24h: shown(row.last_24h) },
    ]),
  );
}

/** From the same rollups. */
async function readErrors(
  { db }: DatabaseConnection,
  names: readonly string[],
): Promise<Map<string, SourceReport['errors']>> {
  const { rows } = await sql<{ source: string; errors: Record<string, number> }>`
    select source, jsonb_object_agg(result, count) as errors from (
      select source, result, sum(count::float8) as count from rollups
      where minute >= ${since('24 hours')} and measure = 'answer' and source = any(${names}::text[])
        and result not in ('accepted', 'duplicate')
      group by 1, 2
    ) as counts group by 1`.execute(db);
  return new Map(rows.map(({ source, errors }) => [source, errors]));
}

/**
 * When each secret of a source matched last: the later of two. secret_matches lags behind by seconds. The newest delivery
 * of each secret (index deliveries_secret) does not, but it is of one source, and two may share a secret.
 */
async function readMatches(
  { db }: DatabaseConnection,
  names: readonly string[],
): Promise<Map<string, Match[]>> {
  const { rows } = await sql<Match>`
    with matched as (
      select newest.source, k.fingerprint, newest.at
      from (${looseScan('deliveries', 'secret_fingerprint')}) k (fingerprint)
      cross join lateral (
        select d.source, d.received_at as at from deliveries d
        where (d.secret_fingerprint, d.received_at) <= (k.fingerprint, 'infinity')
        order by d.secret_fingerprint desc, d.received_at desc limit 1
      ) as newest
      union all
      select source, fingerprint, last_matched_at from secret_matches
    )
    select source, fingerprint, max(at) as at from matched
    where source = any(${names}::text[])
    group by source, fingerprint`.execute(db);
  return Map.groupBy(rows, ({ source }) => source);
}

/** By the primary key. The writer of drift limits how many rows a source may have. */
async function readDrift(
  { db }: DatabaseConnection,
  names: readonly string[],
): Promise<Map<string, DriftReport[]>> {
  const rows = await db
    .selectFrom('drift')
    .selectAll()
    .where('source', 'in', names.length > 0 ? names : [''])
    .orderBy('source')
    .orderBy('last_seen_at', 'desc')
    .orderBy('kind')
    .orderBy('status')
    .orderBy('name')
    .execute();
  const bySource = Map.groupBy(rows, ({ source }) => source);
  return new Map(
    Array.from(bySource, ([source, found]) => [
      source,
      found.map((row) => ({
        kind: row.kind,
        name: row.name,
        status: row.status,
        valueType: row.value_type,
        count: Number(row.count),
        firstSeenAt: row.first_seen_at,
        lastSeenAt: row.last_seen_at,
        sampleDeliveryId: row.sample_delivery_id,
      })),
    ]),
  );
}

/** By the primary key: a day of it. A source has few rows a minute, however many addresses are refused. */
async function readRefusedAddresses({ db }: DatabaseConnection): Promise<Map<string, RefusedAddress[]>> {
  const { rows } = await sql<{ source: string; address: string; count: string }>`
    select source, address, count from (
      select source, address, sum(count)::bigint as count,
             row_number() over (partition by source order by sum(count) desc, address) as place
      from refusal_addresses where minute >= ${since('24 hours')}
      group by source, address
    ) as busiest
    where place <= ${sql.lit(ADDRESSES_SHOWN)}
    order by source, place`.execute(db);
  const bySource = Map.groupBy(rows, ({ source }) => source);
  return new Map(
    Array.from(bySource, ([source, found]) => [
      source,
      found.map(({ address, count }) => ({ address, count: Number(count) })),
    ]),
  );
}

/** The configured ones in their order, then those that are configured no more, by their last match, the latest first. */
function secretsOf(configured: readonly string[], matches: readonly Match[]): SecretUse[] {
  const matchedAt = new Map(matches.map(({ fingerprint, at }) => [fingerprint, at]));
  const dropped = matches
    .filter(({ fingerprint }) => !configured.includes(fingerprint))
    .toSorted((a, b) => b.at.getTime() - a.at.getTime());
  return [
    ...configured.map((fingerprint) => ({
      fingerprint,
      configured: true,
      lastMatchedAt: matchedAt.get(fingerprint) ?? null,
    })),
    ...dropped.map(({ fingerprint, at }) => ({ fingerprint, configured: false, lastMatchedAt: at })),
  ];
}
