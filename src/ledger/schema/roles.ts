// Grants and checks the rights of two database roles: one owns the tables and migrates; the service runs as the other, which
// may do only what the service's statements do. So an attacker who takes over the service cannot change the operator
// log, nor what was recorded, except in the few ways that docs/database-roles.md lists. With one role for both, none of this
// is used.

import { type Kysely, type RawBuilder, type Transaction, sql } from 'kysely';
import { DEFAULT_MIGRATION_TABLE } from 'kysely/migration';
import { SchemaError } from '../../base/errors.ts';
import { ourSchema } from './migration-session.ts';
import { codeOf } from '../sessions/sql-errors.ts';
import type { Database } from './tables.ts';

/** What the service's role may do with each table. The type makes sure that none is missing. */
const PRIVILEGES: Record<keyof Database, string> = {
  jobs: 'select, insert, update',
  events: 'select, insert, update (repeats)',
  deliveries: 'select, insert, update (released_at, event_sequence, unanswered)',
  publications: 'select, insert',
  publication_batches: 'select, insert',
  refusals: 'select, insert, update, delete',
  refusal_addresses: 'select, insert, update, delete',
  outbox_batches: 'select, insert, update, delete',
  outbox_held: 'select, insert, update, delete',
  outbox_version: 'select, update',
  replay_copies: 'select, insert, update, delete',
  relay_lease: 'select, insert, update',
  replicas: 'select, insert, update, delete',
  incidents: 'select, insert, update, delete',
  incident_messages: 'select, insert, update',
  replays: 'select, insert, update, delete',
  replay_skips: 'select, insert',
  tokens: 'select, insert, update, delete',
  sessions: 'select, insert, update, delete',
  sign_in_codes: 'select, insert, delete',
  operator_log: 'select, insert',
  idempotency_keys: 'select, insert, update, delete',
  rollups: 'select, insert, update, delete',
  rollups_hourly: 'select, insert, update, delete',
  waits: 'select, insert, update, delete',
  drift: 'select, insert, update, delete',
  secret_matches: 'select, insert, update',
  schema_requirements: 'select',
  database_identity: 'select',
};

/** Sequences that statements name in nextval(); identity columns need no right. It may draw numbers, but not set them. */
export const SEQUENCES = ['events_sequence_seq', 'publications_id'];

/** They run with the owner's rights and do what the service's role may not. */
export const FUNCTIONS = [
  'make_partition(text, date)',
  'drop_partition(text, date)',
  'discard_quarantined(uuid[], timestamptz[], text, text)',
  'verify_identity()',
];

export const ALL_PRIVILEGES = { ...PRIVILEGES, [DEFAULT_MIGRATION_TABLE]: 'select' };

/** An arbitrary constant. Without this advisory lock, replicas that grant at once fail on the same rows of the catalog. */
const GRANT_LOCK = 7_461_195;

const INSUFFICIENT_PRIVILEGE = '42501';

/** Read from the server, since a URL need not name its user. */
export async function currentRole(db: Kysely<unknown>): Promise<string> {
  const { rows } = await sql<{ role: string }>`select current_user as role`.execute(db);
  return rows[0]?.role ?? '';
}

/** A third role, which owns the tables; null without one. */
const OWNER = sql<string | null>`(
  select pg_get_userbyid(relowner) from pg_class
  where oid = to_regclass('deliveries') and not pg_has_role(relowner, 'usage')
)`;

/** Why Postgres would not let our role migrate, for people; undefined if it would. Only what is pending creates something. */
export async function readMigrationObstacle(
  db: Kysely<unknown>,
  { isPending }: { isPending: boolean },
): Promise<string | undefined> {
  const { rows } = await sql<{ role: string; schema: string; mayCreate: boolean; owner: string | null }>`
    select current_user as role, current_schema() as schema, ${OWNER} as owner,
      has_schema_privilege(current_schema(), 'create') as "mayCreate"`.execute(db);
  const [found] = rows;
  if (found === undefined) return undefined;
  const { role, schema, mayCreate, owner } = found;
  if (owner !== null) return `"${role}" may not migrate: the tables belong to "${owner}"`;
  if (mayCreate || !isPending) return undefined;
  return `"${role}" may not migrate: it may not create in the schema "${schema}"`;
}

/**
 * To be called before anything is changed.
 * @throws SchemaError if the running role may act as the migrating one, or the tables belong to a third role.
 */
export async function checkMigratingRole(db: Kysely<unknown>, running: string): Promise<void> {
  const { rows } = await sql<{ migrating: string; isApart: boolean; owner: string | null }>`
    select current_user as migrating, not pg_has_role(${running}::name, current_user, 'member') as "isApart",
      ${OWNER} as owner`.execute(db);
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
 * Grants the running role what it needs in the present schema and revokes everything else. Idempotent. Nothing, if `unless` says
 * so: it is asked under the lock of all grants, so a newer program's grants always come after ours.
 * @throws SchemaError if some of the tables, sequences or functions belong to a third role.
 */
export async function grantToRunningRole(
  db: Kysely<unknown>,
  running: string,
  { unless }: { unless: (trx: Transaction<unknown>) => Promise<boolean> },
): Promise<void> {
  try {
    await db.transaction().execute(async (trx) => {
      await sql`select pg_advisory_xact_lock(${GRANT_LOCK})`.execute(trx);
      if (!(await unless(trx))) await grantAll(trx, sql.id(running));
    });
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

async function grantAll(trx: Transaction<unknown>, role: RawBuilder<unknown>): Promise<void> {
  const schema = sql.id(await ourSchema(trx));
  await sql`grant usage on schema ${schema} to ${role}`.execute(trx);
  for (const [table, privileges] of Object.entries(ALL_PRIVILEGES)) {
    await sql`revoke all on ${sql.table(table)} from ${role}`.execute(trx);
    await sql`grant ${sql.raw(privileges)} on ${sql.table(table)} to ${role}`.execute(trx);
  }
  await sql`grant usage on sequence ${sql.raw(SEQUENCES.join(', '))} to ${role}`.execute(trx);
  await sql`grant execute on function ${sql.raw(FUNCTIONS.join(', '))} to ${role}`.execute(trx);
}

/** @throws SchemaError if our role may not read some of the tables: then the rights were not granted. */
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
