// Sizes of the tables from Postgres' catalog and from the sizes of files. So the cost depends on the number of partitions, and not
// on what is in them.

import { type Kysely, sql } from 'kysely';
import type { Database } from '../schema/tables.ts';

/** Until when rows are kept: to the end of the retention, for good, or while something needs them. */
export type Kept = 'retention' | 'for_good' | 'while_needed';

/** The type makes sure that no table is missing. */
export const KEPT: Readonly<Record<keyof Database, Kept>> = {
  deliveries: 'retention',
  publications: 'retention',
  publication_batches: 'retention',
  refusals: 'retention',
  refusal_addresses: 'retention',
  replays: 'retention',
  replay_skips: 'retention',
  rollups: 'while_needed',
  rollups_hourly: 'retention',
  waits: 'retention',
  drift: 'retention',
  incidents: 'retention',
  incident_messages: 'retention',
  events: 'for_good',
  jobs: 'for_good',
  operator_log: 'for_good',
  outbox_batches: 'while_needed',
  outbox_held: 'while_needed',
  outbox_version: 'while_needed',
  replay_copies: 'while_needed',
  relay_lease: 'while_needed',
  replicas: 'while_needed',
  tokens: 'while_needed',
  sessions: 'while_needed',
  sign_in_codes: 'while_needed',
  idempotency_keys: 'while_needed',
  secret_matches: 'while_needed',
  schema_requirements: 'while_needed',
  database_identity: 'while_needed',
};

export const TABLES = Object.keys(KEPT) as readonly (keyof Database)[];

/** A table without partitions, or one partition of a table. */
export type Part = {
  readonly table: keyof Database;
  /** In days before today, by UTC: negative for a day to come. Null of a table without days. */
  readonly age: number | null;
  readonly rows: number;
  /** Without indexes. */
  readonly bytes: number;
  readonly indexBytes: number;
};

/**
 * The number of rows as Postgres' planner takes it: the density of the last ANALYZE or VACUUM, times the pages of now. Before the
 * first one, what its counters of writes say. Reads no row and no page of these tables. A size waits for a partition that is being
 * dropped, and is null when it is gone.
 */
export async function readParts(db: Kysely<Database>): Promise<Part[]> {
  const { rows } = await sql<Part>`
    with part as (
      select name, to_regclass(name)::oid as oid from unnest(${TABLES}::text[]) as name
      union all
      select name, inhrelid from unnest(${TABLES}::text[]) as name
      join pg_inherits on inhparent = to_regclass(name)
    )
    select p.name as table,
      case when c.relispartition then (now() at time zone 'UTC')::date - to_date(right(c.relname, 8), 'YYYYMMDD') end as age,
      round(case when c.relpages > 0 and c.reltuples >= 0
        then c.reltuples / c.relpages * coalesce(pg_relation_size(c.oid), 0) / current_setting('block_size')::int
        else pg_stat_get_live_tuples(c.oid) end)::float8 as rows,
      coalesce(pg_table_size(c.oid), 0)::float8 as bytes,
      coalesce(pg_indexes_size(c.oid), 0)::float8 as "indexBytes"
    from part p join pg_class c on c.oid = p.oid
    where c.relkind = 'r' and (not c.relispartition or c.relname ~ '_\\d{8}$')`.execute(db);
  return rows;
}
