// Drops daily partitions that are completely older than the retention, oldest first. A drop locks its table against readers and
// writers, so it is tried for a second only. Before a day of `deliveries` goes, what is still needed of it is saved.

import { sql, type Transaction } from 'kysely';
import { DayKeptError } from '../../base/errors.ts';
import type { DatabaseConnection } from '../sessions/database.ts';
import { inSlices } from './slices.ts';
import type { Database } from '../schema/tables.ts';

/**
 * Saves what is still needed of one day of `deliveries` (`YYYY-MM-DD`, of UTC) before its partition is dropped: at most one slice
 * of it, so that the statement stays far below its time-out. Runs under the lock of all partitions, any number of times for a day,
 * by any replica, and also when another one has just dropped the day.
 * @returns how many rows it saved; 0 if nothing of that day is needed any more
 */
export type BeforeDrop = (trx: Transaction<Database>, day: string) => Promise<number>;

export type Dropped = { names: string[]; hasMore: boolean };

/**
 * An arbitrary constant. Under this advisory lock, replicas make and drop partitions one after another. Whoever makes something
 * of an old day needed again shares it.
 */
const PARTITIONS_LOCK = 7_461_193;

/** Short, since writers queue up behind upkeep while it waits for a lock. */
const LOCK_TIMEOUT = '1s';

/**
 * Drops the partitions of `parent` that are older than `retentionDays`. The first drop that waits too long for its lock ends this
 * run: each further one would keep senders waiting again. A day that `beforeDrop` fails to save is kept, and the others are tried.
 * @throws DayKeptError for the first such day, after all were tried.
 */
export async function dropOld(
  connection: DatabaseConnection,
  parent: string,
  options: { retentionDays: number; beforeDrop?: BeforeDrop | undefined; signal?: AbortSignal },
): Promise<Dropped> {
  const { beforeDrop, signal } = options;
  const dropped: Dropped = { names: [], hasMore: false };
  if (signal?.aborted) return dropped;
  let failure: DayKeptError | undefined;
  for (const day of await oldDays(connection, parent, options.retentionDays)) {
    if (signal?.aborted) break;
    try {
      const names = await dropDay(connection, parent, day, {
        save: beforeDrop && saving(beforeDrop, day),
        signal,
      });
      if (names === undefined) dropped.hasMore = true;
      else dropped.names.push(...names);
    } catch (error) {
      if (!(error instanceof DayKeptError)) throw error;
      failure ??= error;
    }
  }
  if (failure) throw failure;
  return dropped;
}

async function oldDays({ db }: DatabaseConnection, parent: string, retentionDays: number): Promise<string[]> {
  const { rows } = await sql<{ day: string }>`
    select to_char(day, 'YYYY-MM-DD') as day
    from pg_inherits i join pg_class c on c.oid = i.inhrelid,
         -- A partition with another form of name is not ours, and stays.
         lateral (select case when c.relname ~ '_\\d{8}$' then to_date(right(c.relname, 8), 'YYYYMMDD') end as day) as days
    where i.inhparent = ${parent}::regclass and day < (now() at time zone 'UTC')::date - ${retentionDays}::int
    order by 1`.execute(db);
  return rows.map(({ day }) => day);
}

type Save = (trx: Transaction<Database>) => Promise<number>;

function saving(beforeDrop: BeforeDrop, day: string): Save {
  return async (trx) => {
    try {
      return await beforeDrop(trx, day);
    } catch (error) {
      throw new DayKeptError(day, error);
    }
  };
}

/**
 * Saves the day in slices, then drops its partition in a transaction of its own, for the lock. There nothing comes before the
 * drop but one more look whether anything is to be saved: something may have come since the last slice.
 * @returns no name if another replica has dropped it; undefined if there is more to save
 */
async function dropDay(
  connection: DatabaseConnection,
  parent: string,
  day: string,
  { save, signal }: { save: Save | undefined; signal: AbortSignal | undefined },
): Promise<string[] | undefined> {
  if (save && !(await inSlices(connection, inTurn(save), signal))) return undefined;
  const drop = inTurn(async (trx) => {
    if (save && (await save(trx)) > 0) return undefined;
    const { rows } = await sql<{ name: string | null }>`
      select drop_partition(${parent}, ${day}::date) as name`.execute(trx);
    return rows.flatMap(({ name }) => name ?? []);
  });
  return connection.db.transaction().execute(drop);
}

function inTurn<T>(use: (trx: Transaction<Database>) => Promise<T>) {
  return async (trx: Transaction<Database>): Promise<T> => {
    await takeTurn(trx);
    return use(trx);
  };
}

/** Until the transaction ends, no other replica makes or drops partitions. */
export async function takeTurn(trx: Transaction<Database>): Promise<void> {
  await sql`select pg_advisory_xact_lock(${PARTITIONS_LOCK})`.execute(trx);
  await sql`set local lock_timeout = ${sql.lit(LOCK_TIMEOUT)}`.execute(trx);
}

/**
 * Until the transaction ends, no partition is dropped: a delivery's event becomes pending, which the last look before a drop
 * would not see. To be called before the transaction reads `deliveries`: the drop waits for all who have read them.
 */
export async function keepDays(trx: Transaction<Database>): Promise<void> {
  await sql`select pg_advisory_xact_lock_shared(${PARTITIONS_LOCK})`.execute(trx);
}
