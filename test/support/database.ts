// A database of its own for a test, cloned from the migrated template on the server that `npm test` started.

import { randomBytes } from 'node:crypto';
import { Client, type QueryResultRow } from 'pg';

/** Another name lets two runs share one server. */
export const TEMPLATE = process.env['TEST_TEMPLATE'] ?? 'tallyhook_template';

export type TestDatabase = AsyncDisposable & {
  readonly url: string;
  readonly name: string;
  /** Runs one statement on a connection of its own. */
  readonly query: <Row extends QueryResultRow>(text: string, values?: unknown[]) => Promise<Row[]>;
};

/** The URL of a database on the tests' server; without a name, of the one that is always there. */
export function databaseUrl(name?: string): string {
  const given = process.env['TEST_DATABASE_URL'];
  if (!given) throw new Error('TEST_DATABASE_URL is not set: run the tests with "npm test"');
  const url = new URL(given);
  if (name !== undefined) url.pathname = `/${name}`;
  return url.href;
}

export async function query<Row extends QueryResultRow>(
  url: string,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const client = new Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end();
  }
}

/** `empty` leaves the schema out, for tests of migrations. */
export async function createTestDatabase(options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  // As files: through the log it would be quicker to make and, at the checkpoint that dropping it takes, slower by more.
  const template = options.empty ? '' : `template ${TEMPLATE} strategy file_copy`;
  await query(databaseUrl(), `create database ${name} ${template}`);
  const url = databaseUrl(name);
  return {
    url,
    name,
    query: (text, values) => query(url, text, values),
    [Symbol.asyncDispose]: async () => {
      await query(databaseUrl(), `drop database if exists ${name} with (force)`);
    },
  };
}
