// The sandbox's SQLite database, in a file or in memory: opened, migrated, written in transactions. One process serves
// from a file; the commands `tokens` and `account` may write to it at the same time.

import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { SchemaError } from '../../base/errors.ts';
import { APPLICATION_ID, MIGRATIONS } from './schema.ts';

type Values = SQLInputValue[] | [Readonly<Record<string, SQLInputValue>>];

/** `Row` names what the SQL selects. The tables are strict, so SQLite itself guarantees the type of each column. */
export type Statement<Row> = Pick<StatementSync, 'run'> & {
  readonly get: (...values: Values) => Row | undefined;
  readonly all: (...values: Values) => Row[];
};

export type Database = {
  readonly prepare: <Row = never>(sql: string) => Statement<Row>;
  /** `run` must be synchronous. A transaction inside another one becomes part of it. */
  readonly transaction: <T>(run: () => T) => T;
  /** Safe to call twice. */
  readonly close: () => void;
};

export const IN_MEMORY = ':memory:';

/** The other writer is a command that changes one or two rows. The whole process waits meanwhile. */
const BUSY_TIMEOUT_MS = 2_000;

/**
 * Creates the file, readable by its owner alone, and its folder if they are missing.
 * @throws SchemaError if a newer version of this program or another program wrote the file.
 */
export function openDatabase(file: string): Database {
  if (file !== IN_MEMORY) makeFile(file);
  const database = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
  try {
    migrate(database);
    // With WAL, readers and the writer do not block each other. `normal` may lose the last commits in a power cut, but
    // none in a crash of the process.
    database.exec('pragma journal_mode = wal; pragma synchronous = normal');
  } catch (error) {
    database.close();
    throw error;
  }
  return {
    prepare: <Row>(sql: string) => database.prepare(sql) as StatementSync & Statement<Row>,
    transaction: (run) => inTransaction(database, run),
    close: () => {
      if (database.isOpen) database.close();
    },
  };
}

/**
 * Makes this process the only one that serves from `file`. The lock is an SQLite lock on a file of its own, since the
 * commands must be able to write to the data file. The system releases it when the process dies.
 * @returns undefined if another process has the lock.
 */
export function lockForServing(file: string): Disposable | undefined {
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

/** Whether a process serves from `file` at this moment. */
export function isServed(file: string): boolean {
  const lock = lockForServing(file);
  lock?.[Symbol.dispose]();
  return lock === undefined;
}

/** 0600, since the file contains signing secrets. SQLite gives -wal and -shm the same permissions. */
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
  // Immediate: a transaction that starts with a read can fail at its first write, if another one wrote in between.
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
