// Somebody else's transaction on a test's database: holds what it has touched until it is ended.

import { Client, type QueryResultRow } from 'pg';
import type { TestDatabase } from './database.ts';

type OpenTransaction = AsyncDisposable & {
  readonly query: <Row extends QueryResultRow>(text: string, values?: unknown[]) => Promise<Row[]>;
  /** Safe to call twice. */
  readonly rollback: () => Promise<void>;
};

export async function openTransaction(database: Pick<TestDatabase, 'url'>): Promise<OpenTransaction> {
  const client = new Client({ connectionString: database.url });
  client.on('error', () => {});
  await client.connect();
  await client.query('begin');
  let ended: Promise<void> | undefined;
  const end = async () => {
    await client.query('rollback');
    await client.end();
  };
  const rollback = () => (ended ??= end());
  return {
    query: async <Row extends QueryResultRow>(text: string, values: unknown[] = []) =>
      (await client.query<Row>(text, values)).rows,
    rollback,
    [Symbol.asyncDispose]: rollback,
  };
}
