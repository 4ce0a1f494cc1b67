// The schema as text, from Postgres's own catalogs: columns, constraints, indexes and storage options of every
// table but the daily partitions and the migrator's own. Reads the same on every supported version.

import type { TestDatabase } from './database.ts';

type Table = { name: string; partitioned: string | null; options: string | null };

export async function dumpSchema(database: TestDatabase): Promise<string> {
  const tables = await database.query<Table>(`
    select c.relname as name, pg_get_partkeydef(c.oid) as partitioned, array_to_string(c.reloptions, ', ') as options
    from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and c.relname not like 'kysely%'
    order by 1`);
  const parts: string[] = [];
  for (const table of tables) parts.push(await dumpTable(database, table));
  return `${parts.join('\n\n')}\n`;
}

async function dumpTable(database: TestDatabase, { name, partitioned, options }: Table): Promise<string> {
  const columns = await database.query<{ line: string }>(
    `select format('  %I %s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
              case when a.attnotnull then ' not null' else '' end,
              case when a.attidentity = 'a' then ' generated always as identity'
                   when a.attgenerated = 's' then ' generated always as (' || pg_get_expr(d.adbin, d.adrelid) || ') stored'
                   when d.adbin is not null then ' default ' || pg_get_expr(d.adbin, d.adrelid)
                   else '' end) as line
     from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
     where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum`,
    [name],
  );
  // Not-null constraints are left out: only newer versions keep them there, and the columns tell.
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
  const lines = [...columns, ...constraints].map(({ line }) => line).join(',\n');
  const suffix = `${partitioned ? ` partition by ${partitioned}` : ''}${options ? ` with (${options})` : ''}`;
  return [`create table ${name} (\n${lines}\n)${suffix};`, ...indexes.map(({ line }) => line)].join('\n');
}
