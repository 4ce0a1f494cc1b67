// Reads what a run writes: bytes of WAL, and the size of all tables of its database with their indexes. Tables are not named, so
// any schema is measured alike.

import type { Stage } from './stage.ts';

type Storage = {
  /** Of the whole server: nothing else may write meanwhile. */
  readonly walBytes: () => Promise<number>;
  /** Without the space of deleted rows at the end of a table, which a vacuum gives back: a queue that is empty has no size. */
  readonly tableBytes: () => Promise<number>;
  readonly end: () => Promise<void>;
};

const WAL = "select (pg_current_wal_insert_lsn() - '0/0')::float8 as bytes";
const TABLES = `select coalesce(sum(pg_total_relation_size(oid)), 0)::float8 as bytes from pg_class
  where relkind in ('r', 'm') and relnamespace = 'public'::regnamespace`;

/** Connects beforehand: a new connection would cost Postgres as much as dozens of events. */
export async function openStorage({ databases }: Pick<Stage, 'databases'>, name: string): Promise<Storage> {
  const client = await databases.connect(name);
  const read = async (text: string) => (await client.query<{ bytes: number }>(text)).rows[0]?.bytes ?? NaN;
  return {
    walBytes: () => read(WAL),
    tableBytes: async () => {
      await client.query('vacuum');
      return await read(TABLES);
    },
    end: () => client.end(),
  };
}
