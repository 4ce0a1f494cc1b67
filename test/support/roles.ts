// An empty database with two roles, as an operator makes them: one that will own the tables, and one without any right.

import { randomBytes } from 'node:crypto';
import { createTestDatabase, type TestDatabase } from './database.ts';

type Roles = AsyncDisposable & {
  /** Queries run as the user of TEST_DATABASE_URL. */
  readonly database: TestDatabase;
  readonly migrating: Role;
  readonly running: Role;
};

export type Role = { readonly name: string; readonly url: string };

export async function createRoles(): Promise<Roles> {
  const database = await createTestDatabase({ empty: true });
  const [migrating, running] = [await createRole(database, 'migrate'), await createRole(database, 'run')];
  await database.query(`alter database ${database.name} owner to ${migrating.name}`);
  return {
    database,
    migrating,
    running,
    [Symbol.asyncDispose]: async () => {
      // Roles belong to the server, and are not dropped with the database. A test may have given that a time-out.
      await database.query(
        `set statement_timeout = 0; reassign owned by ${migrating.name} to current_user;
         drop owned by ${migrating.name}, ${running.name}; drop role ${migrating.name}, ${running.name}`,
      );
      await database[Symbol.asyncDispose]();
    },
  };
}

async function createRole(database: TestDatabase, suffix: string): Promise<Role> {
  const name = `${database.name}_${suffix}`;
  const password = randomBytes(12).toString('hex');
  await database.query(`create role ${name} login password '${password}'`);
  return { name, url: urlAs(database, { name, password }) };
}

function urlAs({ url }: TestDatabase, { name, password }: { name: string; password: string }): string {
  const own = new URL(url);
  own.username = name;
  own.password = password;
  return own.href;
}
