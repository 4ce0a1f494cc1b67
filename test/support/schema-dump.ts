// Dumps the schema as text, from Postgres's catalogs: sequences, functions, and tables with their columns, collations,
// constraints, indexes, triggers and storage options. Daily partitions and the migrator's tables are left out. The text is the
// same on every supported version.

import type { TestDatabase } from './database.ts';

type Table = { name: string; partitioned: string | null; options: string | null };

export async function dumpSchema(database: TestDatabase): Promise<string> {
  const tables = await database.query<Table>(`
    select c.relname as name, pg_get_partkeydef(c.oid) as partitioned, array_to_string(c.reloptions, ', ') as options
    from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and c.relname not like 'kysely%'
    order by 1`);
  const parts = [...(await dumpSequences(database)), ...(await dumpFunctions(database))];
  for (const table of tables) parts.push(await dumpTable(database, table));
  return `${parts.join('\n\n')}\n`;
}

/** Only those that no identity column owns. */
async function dumpSequences(database: TestDatabase): Promise<string[]> {
  const sequences = await database.query<{ line: string }>(`
    select format('create sequence %I;', c.relname) as line
    from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'S'
      and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'i')
    order by c.relname`);
  return sequences.map(({ line }) => line);
}

async function dumpFunctions(database: TestDatabase): Promise<string[]> {
  const functions = await database.query<{ text: string }>(`
    select pg_get_functiondef(oid) as text from pg_proc
    where pronamespace = 'public'::regnamespace order by proname`);
  return functions.map(({ text }) => `${text.trimEnd()};`);
}

async function dumpTable(database: TestDatabase, { name, partitioned, options }: Table): Promise<string> {
  const columns = await database.query<{ line: string }>(
    `select format('  %I %s%s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
              case when a.attcollation <> t.typcollation then format(' collate %I', c.collname) else '' end,
              case when a.attnotnull then ' not null' else '' end,
              case when a.attidentity = 'a' then ' generated always as identity'
                   when a.attgenerated = 's' then ' generated always as (' || pg_get_expr(d.adbin, d.adrelid) || ') stored'
                   when d.adbin is not null then ' default ' || pg_get_expr(d.adbin, d.adrelid)
                   else '' end) as line
     from pg_attribute a join pg_type t on t.oid = a.atttypid
     left join pg_collation c on c.oid = a.attcollation
     left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
     where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum`,
    [name],
  );
  // Without not-null constraints: only newer versions have them in pg_constraint, and the columns show them.
  const constraints = await database.query<{ line: string }>(
    `select format('  constraint %I %s', conname, pg_get_constraintdef(oid)) as line
     from pg_constraint where conrelid = $1::regclass and contype <> 'n' order by conname`,
    [name],
  );
  const indexes = await database.query<{ line: string }>(
    `select pg_get_indexdef(i.indexrelid) || ';' as line
     from pg_index i left join pg_constraint c on c.conindid = i.indexrelid
     where i.indrelid = $1::regclass and c.oid is null order by 1`,
    [name],
  );
  const triggers = await database.query<{ line: string }>(
    `select pg_get_triggerdef(oid) || ';' as line from pg_trigger
     where tgrelid = $1::regclass and not tgisinternal order by tgname`,
    [name],
  );
  const lines = [...columns, ...constraints].map(({ line }) => line).join(',\n');
  const suffix = `${partitioned ? ` partition by ${partitioned}` : ''}${options ? ` with (${options})` : ''}`;
  return [
    `create table ${name} (\n${lines}\n)${suffix};`,
    ...[...indexes, ...triggers].map(({ line }) => line),
  ].join('\n');
}
