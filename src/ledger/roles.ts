// Two roles of the database: one that owns the tables and migrates, and one that the service runs as, which may do what
// its statements do and no more. So whoever takes the service over cannot change what operators did (the operator log), nor
// what was kept but for a few ways, which docs/database-roles.md names. One role for both works as well: then nothing here is
// needed.

import { type Kysely, type RawBuilder, sql } from 'kysely';
import { DEFAULT_MIGRATION_TABLE } from 'kysely/migration';
import { SchemaError } from '../errors.ts';
import { codeOf } from './database.ts';
import type { Database } from './tables.ts';

/** What the running role may do with each table; a new one has to be listed before it compiles. */
const PRIVILEGES: Record<keyof Database, string> = {
  jobs: 'select, insert, update',
  events: 'select, insert, update (repeats)',
  deliveries: 'select, insert, update (released_at, event_sequence)',
  publications: 'select, insert',
  refusals: 'select, insert, update, delete',
  refusal_addresses: 'select, insert, update, delete',
  outbox: 'select, insert, update, delete',
  relay_lease: 'select, insert, update',
  replays: 'select, insert, update, delete',
  replay_skips: 'select, insert',
  tokens: 'select, insert, update, delete',
  operator_log: 'select, insert',
  idempotency_keys: 'select, insert, update, delete',
  rollups: 'select, insert, update, delete',
  rollups_hourly: 'select, insert, update, delete',
  drift: 'select, insert, update, delete',
  secret_matches: 'select, insert, update',
};

/** Numbers are drawn from these by name: an identity column needs no privilege. To draw them, not to set them. */
const SEQUENCES = ['events_sequence_seq', 'publications_id'];

/** What it may do to tables beyond that, with the owner's rights and within their bounds: migration 0003. */
const FUNCTIONS = [
  'make_partition(text, date)',
  'drop_partition(text, date)',
  'correct_content_hash(bigint, bytea, bytea, uuid[])',
];

const ALL_PRIVILEGES = { ...PRIVILEGES, [DEFAULT_MIGRATION_TABLE]: 'select' };

/** Any constant of ours will do: replicas that grant at once would fail over the same rows of the catalog. */
const GRANT_LOCK = 7_461_195;

const INSUFFICIENT_PRIVILEGE = '42501';

/** Asked of the server: a URL need not name its user. */
export async function currentRole(db: Kysely<unknown>): Promise<string> {
  const { rows } = await sql<{ role: string }>`select current_user as role`.execute(db);
  return rows[0]?.role ?? '';
}

/**
 * Before anything is changed.
 * @throws SchemaError when the running role could act as the migrating one anyway, or the tables are somebody else's.
 */
export async function checkMigratingRole(db: Kysely<unknown>, running: string): Promise<void> {
  const { rows } = await sql<{ migrating: string; isApart: boolean; owner: string | null }>`
    select current_user as migrating, not pg_has_role(${running}::name, current_user, 'member') as "isApart", (
      select pg_get_userbyid(relowner) from pg_class
      where oid = to_regclass('deliveries') and not pg_has_role(relowner, 'usage')
    ) as owner`.execute(db);
  const { migrating = '', isApart = false, owner = null } = rows[0] ?? {};
  if (!isApart) {
    throw new SchemaError(
      'roles_unfit',
      `"${running}" of DATABASE_URL may act as "${migrating}" of MIGRATION_DATABASE_URL: give the service a role without ` +
        'rights of its own, or leave MIGRATION_DATABASE_URL out',
    );
  }
  if (owner !== null) {
    throw new SchemaError(
      'roles_unfit',
      `the tables belong to "${owner}": that is the role for MIGRATION_DATABASE_URL, and DATABASE_URL needs a new one`,
    );
  }
}

/**
 * Gives the running role what it needs and takes what it does not, in the present schema. Idempotent.
 * @throws SchemaError when some of it belongs to a third role.
 */
export async function grantToRunningRole(db: Kysely<unknown>, running: string): Promise<void> {
  try {
    await grantAll(db, sql.id(running));
  } catch (error) {
    if (codeOf(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    throw new SchemaError(
      'roles_unfit',
      `the role of MIGRATION_DATABASE_URL may not grant "${running}" what it needs: the schema and all of Tallyhook's ` +
        'tables, sequences and functions in it have to belong to the migrating role',
      { cause: error },
    );
  }
}

function grantAll(db: Kysely<unknown>, role: RawBuilder<unknown>): Promise<void> {
  return db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(${GRANT_LOCK})`.execute(trx);
    const { rows } = await sql<{ schema: string }>`select current_schema() as schema`.execute(trx);
    const schema = sql.id(rows[0]?.schema ?? 'public');
    await sql`grant usage on schema ${schema} to ${role}`.execute(trx);
    for (const [table, privileges] of Object.entries(ALL_PRIVILEGES)) {
      await sql`revoke all on ${sql.table(table)} from ${role}`.execute(trx);
      await sql`grant ${sql.raw(privileges)} on ${sql.table(table)} to ${role}`.execute(trx);
    }
    await sql`grant usage on sequence ${sql.raw(SEQUENCES.join(', '))} to ${role}`.execute(trx);
    await sql`grant execute on function ${sql.raw(FUNCTIONS.join(', '))} to ${role}`.execute(trx);
  });
}

/** @throws SchemaError when there are tables that our role may not even read: they were made without its knowing. */
export async function checkRunningRole(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ role: string; name: string }>`
    select current_user as role, name from unnest(${Object.keys(ALL_PRIVILEGES)}::text[]) as name
    where not has_table_privilege(to_regclass(name), 'select')`.execute(db);
  const [first] = rows;
  if (first === undefined) return;
  throw new SchemaError(
    'roles_unfit',
    `"${first.role}" of DATABASE_URL may not use ${rows.map(({ name }) => name).join(', ')}: run "tallyhook migrate" with ` +
      'MIGRATION_DATABASE_URL, the role that owns the tables, and this DATABASE_URL',
  );
}
