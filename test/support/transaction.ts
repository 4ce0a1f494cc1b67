// Another session on a test's database, with or without a transaction. Its locks last until it ends.

import { Client, type QueryResultRow } from 'pg';
import type { TestDatabase } from './database.ts';

type OpenTransaction = AsyncDisposable & {
  readonly query: <Row extends QueryResultRow>(text: string, values?: unknown[]) => Promise<Row[]>;
  /** Safe to call twice. */
  readonly rollback: () => Promise<void>;
};

export async function openSession({ url }: Pick<TestDatabase, 'url'>): Promise<Client & AsyncDisposable> {
  const client = new Client({ connectionString: url });
  client.on('error', () => {}); // tests end all connections to their database
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

/** One statement on a connection of its own: one that is kept would not survive what is done to the server. */
export async function queryOnce<Row extends QueryResultRow>(
  url: string,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  await using session = await openSession({ url });
  return (await session.query<Row>(text, values)).rows;
}

export async function openTransaction(database: Pick<TestDatabase, 'url'>): Promise<OpenTransaction> {
  const session = await openSession(database);
  await session.query('begin');
  let ended: Promise<void> | undefined;
  const end = async () => {
    await session.query('rollback').catch(() => {}); // the test's database may have ended it
    await session.end();
  };
  const rollback = () => (ended ??= end());
  return {
    query: async <Row extends QueryResultRow>(text: string, values: unknown[] = []) =>
      (await session.query<Row>(text, values)).rows,
    rollback,
    [Symbol.asyncDispose]: rollback,
  };
}
