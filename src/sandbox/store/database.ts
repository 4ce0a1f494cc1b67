// The sandbox's own SQLite file, or one in memory: opened, brought up to date, and written in transactions. One process
// serves from it; the commands that stand in for the dashboard may write beside it.

import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { SchemaError } from '../../errors.ts';
import { APPLICATION_ID, MIGRATIONS } from './schema.ts';

export type Database = {
  readonly prepare: (sql: string) => StatementSync;
  /** All of it or nothing. What runs inside must not wait for anything. Inside another one it is a part of that. */
  readonly transaction: <T>(run: () => T) => T;
  /** Safe to call twice. */
  readonly close: () => void;
};

export const IN_MEMORY = ':memory:';

/** The other writer is a command that changes a row or two. Meanwhile nothing else here runs. */
const BUSY_TIMEOUT_MS = 2_000;

/**
 * Makes the file, for its owner alone, and its folder if they are missing.
 * @throws SchemaError for a file of a newer program, or of another one.
 */
export function openDatabase(file: string): Database {
  if (file !== IN_MEMORY) makeFile(file);
  const database = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
  try {
    migrate(database);
    // Readers and the writer do not wait for each other. A power cut may take the last moment, a crash nothing.
    database.exec('pragma journal_mode = wal; pragma synchronous = normal');
  } catch (error) {
    database.close();
    throw error;
  }
  return {
    prepare: (sql) => database.prepare(sql),
    transaction: (run) => inTransaction(database, run),
    close: () => {
      if (database.isOpen) database.close();
    },
  };
}

/**
 * Held by the process that serves from `file`, and let go by the system if it dies. A lock of SQLite's own on an empty
 * file beside it, since the commands must be able to write into the first.
 * @returns undefined if another process holds it.
 */
export function holdAlone(file: string): Disposable | undefined {
  if (file === IN_MEMORY) return { [Symbol.dispose]: () => {} };
  makeFile(file);
  const lock = new DatabaseSync(`${file}-serving`);
  try {
    lock.exec('begin exclusive');
    return { [Symbol.dispose]: () => lock.close() };
  } catch {
    lock.close();
    return undefined;
  }
}

/** It holds signing secrets. SQLite gives its companions (-wal, -shm) the same rights. */
function makeFile(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  closeSync(openSync(file, 'a', 0o600));
}

function migrate(database: DatabaseSync): void {
  inTransaction(database, () => {
    const known = readNumber(database, 'user_version');
    const isOurs = readNumber(database, 'application_id') === APPLICATION_ID;
    const isEmpty = database.prepare('select 1 from sqlite_schema').get() === undefined;
    if (!isOurs && !isEmpty) {
      throw new SchemaError('migration_failed', 'the data file belongs to another program');
    }
    if (known > MIGRATIONS.length) {
      throw new SchemaError(
        'schema_newer',
        `the data file has schema ${known}, and this program knows ${MIGRATIONS.length}: use a newer program`,
      );
    }
    for (const migration of MIGRATIONS.slice(known)) database.exec(migration);
    database.exec(`pragma application_id = ${APPLICATION_ID}; pragma user_version = ${MIGRATIONS.length}`);
  });
}

function readNumber(database: DatabaseSync, pragma: string): number {
  return Number(database.prepare(`pragma ${pragma}`).get()?.[pragma]);
}

function inTransaction<T>(database: DatabaseSync, run: () => T): T {
  if (database.isTransaction) return run();
  // Immediate: a transaction that began by reading could find at its first write that another had been faster.
  database.exec('begin immediate');
  try {
    const result = run();
    database.exec('commit');
    return result;
  } catch (error) {
    if (database.isTransaction) database.exec('rollback');
    throw error;
  }
}
