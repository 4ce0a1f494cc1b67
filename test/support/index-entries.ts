// Counts the entries of all indexes of a test's database. Needs no extension: an index that is built anew says how many
// entries it has.

import type { TestDatabase } from './database.ts';
import { openSession } from './transaction.ts';

/**
 * From now on every version of a row stays, and its index entries stay with it, also of rows that are deleted or updated. So the
 * count only grows, by each entry that is made. Ends when it is disposed of.
 */
export async function keepVersions(database: TestDatabase): Promise<AsyncDisposable> {
  const session = await openSession(database);
  await session.query('begin isolation level repeatable read');
  await session.query('select txid_current_snapshot()');
  return session;
}

/**
 * Their entries come with the time that passes, and not with events: those of the counts, with each minute, and the more the more
 * unequal its answers are. An incident may begin on a machine that is slow.
 */
const CLOCKED = ['relay_lease', 'replicas', 'incidents', 'rollups', 'rollups_hourly'];

/** By index, of all tables but those. An update that stays on its page and touches no index (HOT) makes no entry. */
export async function countIndexEntries(database: TestDatabase): Promise<Map<string, number>> {
  await database.query('reindex schema public');
  const rows = await database.query<{ name: string; entries: number }>(
    `select c.relname as name, c.reltuples::float8 as entries from pg_class c join pg_index i on i.indexrelid = c.oid
     where c.relkind = 'i' and c.relnamespace = 'public'::regnamespace and c.reltuples > 0
       and i.indrelid <> all($1::regclass[])`,
    [CLOCKED],
  );
  return new Map(rows.map(({ name, entries }) => [name, entries]));
}

/** How many transactions recorded the newest deliveries. */
export async function batchesOf(database: TestDatabase, newest: number): Promise<number> {
  const [row] = await database.query<{ batches: number }>(
    `select count(distinct made_by)::int as batches
     from (select xmin::text as made_by from deliveries order by id desc limit $1) as delivery`,
    [newest],
  );
  return row?.batches ?? NaN;
}
