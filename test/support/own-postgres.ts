// A Postgres of a test's own, to be stopped, killed and frozen.

import { randomBytes } from 'node:crypto';
import { Client, type QueryResultRow } from 'pg';
import { type PostgresServer, startPostgres } from '../../scripts/services/postgres.ts';
import type { TestDatabase } from './database.ts';

export type OwnPostgres = AsyncDisposable & {
  readonly server: PostgresServer;
  /** A new, empty database on it: the replica has to migrate it (MIGRATE_ON_START). */
  readonly createDatabase: () => Promise<TestDatabase>;
};

export async function startOwnPostgres(): Promise<OwnPostgres> {
  const server = await startPostgres();
  return {
    server,
    createDatabase: async () => {
      const name = `test_${randomBytes(6).toString('hex')}`;
      await query(server.url, `create database ${name}`);
      const url = new URL(server.url);
      url.pathname = `/${name}`;
      return {
        url: url.href,
        name,
        query: (text, values) => query(url.href, text, values),
        [Symbol.asyncDispose]: async () => {
          await query(server.url, `drop database if exists ${name} with (force)`);
        },
      };
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
}

/** Runs one statement on a connection of its own: one that stays would not outlive what is done to the server. */
async function query<Row extends QueryResultRow>(
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
