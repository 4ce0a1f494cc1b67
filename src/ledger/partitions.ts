// Makes the daily partitions of `deliveries` and `publications` ahead of time and drops those past the
// retention. Days are UTC by the database's clock. Safe to run at any time, from any number of replicas.

import { sql, type Transaction } from 'kysely';
import type { DatabaseConnection } from './database.ts';
import type { Database } from './tables.ts';

/** A week, so that upkeep may fail for days before an insert has no partition to go to. */
export const DAYS_AHEAD = 7;

const PARTITIONED = ['deliveries', 'publications'] as const;

/** Any constant of ours will do: replicas that keep the partitions at once take turns. */
const UPKEEP_LOCK = 7_461_193;

/** Upkeep waits so long for a lock. While it waits, writers queue up behind it. */
const LOCK_TIMEOUT = '1s';

/**
 * Makes what is missing and drops what is too old. Making comes first and is committed by itself: dropping has
 * to wait for whoever reads the table, and a long read must not cost us the days ahead.
 */
export async function keepPartitions(
  connection: DatabaseConnection,
  options: { retentionDays: number },
): Promise<{ made: string[]; dropped: string[] }> {
  const made = await makePartitions(connection);
  return { made, dropped: await dropOld(connection, options) };
}

/** Leaves a partition for yesterday (the clock may step back over midnight), today and the days ahead. */
export function makePartitions({ db }: DatabaseConnection): Promise<string[]> {
  return db.transaction().execute(async (trx) => {
    await lockUpkeep(trx);
    const made: string[] = [];
    for (const parent of PARTITIONED) {
      const wanted = await partitionNames(trx, parent, -1, DAYS_AHEAD);
      const existing = await existingPartitions(trx, parent);
      for (const { name, day } of wanted.filter((partition) => !existing.includes(partition.name))) {
        await makePartition(trx, parent, name, day);
        made.push(name);
      }
    }
    return made;
  });
}

/**
 * Leaves no partition that is wholly older than `retentionDays`; with them go returned outbox entries, refusal
 * counts, statistics and drift of that age. Pending and parked entries stay, however old.
 */
function dropOld({ db }: DatabaseConnection, options: { retentionDays: number }): Promise<string[]> {
  return db.transaction().execute(async (trx) => {
    await lockUpkeep(trx);
    const dropped: string[] = [];
    for (const parent of PARTITIONED) {
      const existing = await existingPartitions(trx, parent);
      const [oldestKept] = await partitionNames(trx, parent, -options.retentionDays, -options.retentionDays);
      for (const name of existing.filter((partition) => oldestKept && partition < oldestKept.name)) {
        // Takes the parent's lock from writers, too: rather not now than keep senders waiting.
        await sql`drop table ${sql.id(name)}`.execute(trx);
        dropped.push(name);
      }
    }
    const oldest = sql<Date>`now() - make_interval(days => ${options.retentionDays})`;
    await trx
      .deleteFrom('outbox')
      .where('state', '=', 'returned')
      .where('replay_id', 'is', null) // of a replay that is paused until its queue is there
      .where('recorded_at', '<', oldest)
      .execute();
    await trx.deleteFrom('replays').where('finished_at', '<', oldest).execute(); // and what it left out
    await trx.deleteFrom('refusals').where('minute', '<', oldest).execute();
    await trx.deleteFrom('refusal_addresses').where('minute', '<', oldest).execute();
    // A day's worth at a time, by the primary key: after a shorter retention was set, all at once would take longer than
    // a statement may, and undo everything above.
    await sql`
      delete from rollups
      where minute < least(${oldest}, (select min(minute) from rollups) + interval '1 day')`.execute(trx);
    await sql`
      delete from rollups_hourly
      where hour < least(${oldest}, (select min(hour) from rollups_hourly) + interval '1 month')`.execute(
      trx,
    );
    // What was not seen since: no body is left to look at.
    await trx.deleteFrom('drift').where('last_seen_at', '<', oldest).execute();
    // By idempotency_keys_time. Repeated requests come within minutes; the API promises a day.
    await trx
      .deleteFrom('idempotency_keys')
      .where('created_at', '<', sql<Date>`now() - interval '24 hours'`)
      .execute();
    return dropped;
  });
}

async function lockUpkeep(trx: Transaction<Database>): Promise<void> {
  await sql`select pg_advisory_xact_lock(${UPKEEP_LOCK})`.execute(trx);
  await sql`set local lock_timeout = ${sql.lit(LOCK_TIMEOUT)}`.execute(trx);
}

type Partition = { name: string; day: string };

async function partitionNames(
  trx: Transaction<Database>,
  parent: string,
  from: number,
  to: number,
): Promise<Partition[]> {
  const { rows } = await sql<Partition>`
    select ${parent}::text || to_char(day, '_YYYYMMDD') as name, to_char(day, 'YYYY-MM-DD') as day
    from generate_series(${from}::int, ${to}::int) as n,
         lateral (select (now() at time zone 'UTC')::date + n as day) as days
    order by n`.execute(trx);
  return rows;
}

async function existingPartitions(trx: Transaction<Database>, parent: string): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = ${parent}::regclass order by 1`.execute(trx);
  return rows.map((row) => row.name);
}

/** ATTACH locks the parent only against other changes of its form; CREATE … PARTITION OF would stop writers. */
async function makePartition(
  trx: Transaction<Database>,
  parent: string,
  name: string,
  day: string,
): Promise<void> {
  const nextDay = sql`${sql.lit(day)}::date + 1`;
  const { rows } = await sql<{ end: string }>`select to_char(${nextDay}, 'YYYY-MM-DD') as end`.execute(trx);
  await sql`create table ${sql.id(name)} (like ${sql.id(parent)} including all)`.execute(trx);
  await sql`
    alter table ${sql.id(parent)} attach partition ${sql.id(name)}
    for values from (${sql.lit(`${day} 00:00:00+00`)}) to (${sql.lit(`${rows[0]?.end} 00:00:00+00`)})`.execute(
    trx,
  );
}
