// Which rights of the running role `migrate` would change: what roles.ts grants and revokes, compared with what the catalog has.

import { type Kysely, sql } from 'kysely';
import { ourSchema } from './migration-session.ts';
import { ALL_PRIVILEGES, FUNCTIONS, SEQUENCES } from './roles.ts';

export type PlannedRights = {
  readonly role: string;
  /** `select, insert on jobs`, also on tables that are still to be made. */
  readonly granted: readonly string[];
  readonly revoked: readonly string[];
};

/** `select`, or `update (repeats)` for a column. */
type Right = { readonly right: string; readonly on: string };

export async function planRights(db: Kysely<unknown>, role: string): Promise<PlannedRights> {
  const wanted = wantedRights(await ourSchema(db));
  const present = await presentRights(db, role);
  return { role, granted: without(wanted, present), revoked: without(present, wanted) };
}

function wantedRights(schema: string): Right[] {
  return [
    { right: 'usage', on: `schema ${schema}` },
    ...Object.entries(ALL_PRIVILEGES).flatMap(([on, privileges]) =>
      rightsIn(privileges).map((right) => ({ right, on })),
    ),
    ...SEQUENCES.map((name) => ({ right: 'usage', on: `sequence ${name}` })),
    ...FUNCTIONS.map((name) => ({ right: 'execute', on: `function ${name}` })),
  ];
}

/** `select, update (a, b)` has `update (a)` and `update (b)`. */
const rightsIn = (privileges: string): string[] =>
  Array.from(privileges.matchAll(/(\w+)(?: \(([^)]*)\))?/g)).flatMap(([, right = '', columns]) =>
    columns === undefined ? [right] : columns.split(', ').map((column) => `${right} (${column})`),
  );

/** Of tables all, since what is not wanted is revoked. Of other objects what is granted alone. */
async function presentRights(db: Kysely<unknown>, role: string): Promise<Right[]> {
  const tables = Object.keys(ALL_PRIVILEGES);
  const { rows } = await sql<Right>`
    with acls (acl, counted, columns, "on") as (
      select nspacl, 'USAGE', '', 'schema ' || nspname from pg_namespace where nspname = current_schema()
      union all select relacl, null, '', name from unnest(${tables}::text[]) name join pg_class on oid = to_regclass(name)
      union all select attacl, null, ' (' || attname || ')', name
        from unnest(${tables}::text[]) name join pg_attribute on attrelid = to_regclass(name) and not attisdropped
      union all select relacl, 'USAGE', '', 'sequence ' || name
        from unnest(${SEQUENCES}::text[]) name join pg_class on oid = to_regclass(name)
      union all select proacl, 'EXECUTE', '', 'function ' || name
        from unnest(${FUNCTIONS}::text[]) name join pg_proc on oid = to_regprocedure(name)
    )
    select lower(privilege_type) || columns as right, "on" from acls, aclexplode(acl)
    where grantee = (select oid from pg_roles where rolname = ${role}) and privilege_type = coalesce(counted, privilege_type)
    order by 2, 1`.execute(db);
  return rows;
}

/** A line for each object. */
function without(rights: readonly Right[], others: readonly Right[]): string[] {
  const same = (a: Right) => (b: Right) => a.right === b.right && a.on === b.on;
  const left = rights.filter((right) => !others.some(same(right)));
  const byObject = Map.groupBy(left, ({ on }) => on);
  return Array.from(byObject, ([on, found]) => `${found.map(({ right }) => right).join(', ')} on ${on}`);
}
