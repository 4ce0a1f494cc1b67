// Makes the daily partitions of deliveries and of both tables of publications ahead of time and drops those older than the
// retention. Days are UTC by the database's clock. Safe to run at any time, from any number of replicas.
//
// Functions of the database do both, with the rights of the tables' owner: the service's role need not own anything.

import { sql, type Transaction } from 'kysely';
import type { DatabaseConnection } from './database.ts';
import type { Database } from './tables.ts';

/** A week, so that upkeep may fail for days before an insert has no partition to go to. */
export const DAYS_AHEAD = 7;

const PARTITIONED = ['deliveries', 'publications', 'publication_batches'] as const;

/** An arbitrary constant. Under this advisory lock, replicas make and drop partitions one after another. */
const PARTITIONS_LOCK = 7_461_193;

/** Short, since writers queue up behind upkeep while it waits for a lock. */
const LOCK_TIMEOUT = '1s';

/**
 * Makes the missing partitions and drops those that are too old, each part on its own: a drop waits for readers of the table,
 * and a long read must stop neither the creation of partitions nor the other table's drops. Starts no further drop once `signal`
 * is aborted.
 * @throws the first error, after all parts were tried.
 */
export async function keepPartitions(
  connection: DatabaseConnection,
  options: { retentionDays: number; signal?: AbortSignal },
): Promise<{ made: string[]; dropped: string[] }> {
  const [made = [], ...dropped] = await allInTurn([
    () => makePartitions(connection),
    ...PARTITIONED.map((parent) => () => dropOld(connection, parent, options)),
  ]);
  return { made, dropped: dropped.flat() };
}

/** Makes those of yesterday (the clock may step back over midnight), today and the days ahead. */
export function makePartitions({ db }: DatabaseConnection): Promise<string[]> {
  return db.transaction().execute(async (trx) => {
    await takeTurn(trx);
    const { rows } = await sql<{ made: string | null }>`
      select make_partition(parent, (now() at time zone 'UTC')::date + n) as made
      from unnest(${PARTITIONED}::text[]) as parent, generate_series(-1, ${DAYS_AHEAD}::int) as n`.execute(
      trx,
    );
    return rows.flatMap(({ made }) => made ?? []).toSorted();
  });
}

/**
 * Drops the partitions that are completely older than `retentionDays`. A drop locks the parent against readers and writers, so
 * each drop has a transaction of its own with nothing else in it. The first that waits too long for its lock ends this run:
 * each further one would keep senders waiting again.
 */
async function dropOld(
  { db }: DatabaseConnection,
  parent: (typeof PARTITIONED)[number],
  { retentionDays, signal }: { retentionDays: number; signal?: AbortSignal },
): Promise<string[]> {
  if (signal?.aborted) return [];
  const { rows: old } = await sql<{ day: string }>`
    select to_char(day, 'YYYY-MM-DD') as day
    from pg_inherits i join pg_class c on c.oid = i.inhrelid,
         -- A partition with another form of name is not ours, and stays.
         lateral (select case when c.relname ~ '_\\d{8}$' then to_date(right(c.relname, 8), 'YYYYMMDD') end as day) as days
    where i.inhparent = ${parent}::regclass and day < (now() at time zone 'UTC')::date - ${retentionDays}::int
    order by 1`.execute(db);
  const dropped: string[] = [];
  for (const { day } of old) {
    if (signal?.aborted) break;
    const { rows } = await db.transaction().execute(async (trx) => {
      await takeTurn(trx);
      return sql<{ name: string | null }>`select drop_partition(${parent}, ${day}::date) as name`.execute(
        trx,
      );
    });
    dropped.push(...rows.flatMap(({ name }) => name ?? []));
  }
  return dropped;
}

async function takeTurn(trx: Transaction<Database>): Promise<void> {
  await sql`select pg_advisory_xact_lock(${PARTITIONS_LOCK})`.execute(trx);
  await sql`set local lock_timeout = ${sql.lit(LOCK_TIMEOUT)}`.execute(trx);
}

async function allInTurn<T>(parts: readonly (() => Promise<T>)[]): Promise<T[]> {
  const settled: PromiseSettledResult<T>[] = [];
  for (const part of parts) settled.push(...(await Promise.allSettled([part()])));
  return settled.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
}
