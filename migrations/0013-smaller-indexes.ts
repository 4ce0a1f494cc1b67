// Indexes without the columns that only order rows of the same time, and none on the time of all deliveries. Rows of a write have
// one time, so Postgres keeps one copy of their key and a list of their places. Frozen once landed: a change to the schema is a new
// migration.
//
// `ahead` builds the new indexes beside the old ones while deliveries are recorded; `up` exchanges them, in a moment. If `up` finds
// none, it builds them itself, and writers wait.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Kysely, type RawBuilder, sql } from 'kysely';

const NAME = '0013-smaller-indexes';

type Index = {
  readonly table: 'deliveries' | 'events' | 'jobs';
  readonly name: string;
  readonly keys: readonly string[];
  /** The keys that it loses. */
  readonly ties: readonly string[];
  readonly where?: string;
};

/** What is left out holds few rows: late events, and deliveries in quarantine. */
const INDEXES: readonly Index[] = [
  { table: 'jobs', name: 'jobs_source', keys: ['source', 'first_seen_at'], ties: ['job_id'] },
  {
    table: 'jobs',
    name: 'jobs_status',
    keys: ['last_status', 'first_seen_at'],
    ties: ['source', 'job_id'],
    where: `last_status <> 'completed'`,
  },
  { table: 'events', name: 'events_source', keys: ['source', 'recorded_at'], ties: ['sequence'] },
  {
    table: 'events',
    name: 'events_status',
    keys: ['status', 'recorded_at'],
    ties: ['sequence'],
    where: `status = 'failed'`,
  },
  {
    table: 'events',
    name: 'events_error',
    keys: ['error_code', 'recorded_at'],
    ties: ['sequence'],
    where: 'error_code is not null',
  },
  ...[
    { name: 'deliveries_job', keys: ['source', 'job_id'] },
    { name: 'deliveries_source', keys: ['source'] },
    { name: 'deliveries_secret', keys: ['secret_fingerprint'] },
    { name: 'deliveries_remote', keys: ['remote_address'] },
    { name: 'deliveries_outcome', keys: ['outcome'], where: `outcome <> 'accepted'` },
    { name: 'deliveries_status', keys: ['status'], where: `status not in ('processing', 'completed')` },
    { name: 'deliveries_error', keys: ['error_code'], where: 'error_code is not null' },
  ].map((index) => ({
    ...index,
    table: 'deliveries' as const,
    keys: [...index.keys, 'received_at'],
    ties: ['id'],
  })),
];

/** Until it takes the place of the old one. */
const newName = ({ name }: Index) => sql.id(`${name}_new`);

const definition = ({ keys, where }: Pick<Index, 'keys' | 'where'>) =>
  sql`(${sql.join(keys.map((key) => sql.id(key)))}) ${sql.raw(where ? `where ${where}` : '')}`;

/**
 * Takes long on a large ledger. Can be killed at any point, and run again: what is there already is kept. Not in a transaction,
 * and one run at a time.
 */
export async function ahead(db: Kysely<unknown>): Promise<void> {
  for (const index of INDEXES) {
    if (index.table === 'deliveries') await buildByPartitions(db, index);
    else await build(db, { ...index, name: `${index.name}_new` });
  }
}

/** Without holding writers: it waits for transactions that have begun, and nobody waits for it. */
async function build(
  db: Kysely<unknown>,
  index: Pick<Index, 'keys' | 'where'> & { table: string; name: string },
): Promise<void> {
  const name = sql.id(index.name);
  await patiently(async () => {
    // What a run that was killed has left.
    if (await isInvalid(db, index.name)) await sql`drop index concurrently ${name}`.execute(db);
    await sql`
      create index concurrently if not exists ${name} on ${sql.id(index.table)} ${definition(index)}`.execute(
      db,
    );
  });
}

/** First on no partition: those that are made from now on have it, and it is valid as soon as the others have it, too. */
async function buildByPartitions(db: Kysely<unknown>, index: Index): Promise<void> {
  await briefly(
    db,
    sql`create index if not exists ${newName(index)} on only ${sql.id(index.table)} ${definition(index)}`,
  );
  for (;;) {
    const partition = await partitionWithout(db, index);
    if (partition === undefined) return;
    // As Postgres names it.
    const name = [partition, ...index.keys, 'idx'].join('_');
    try {
      await build(db, { ...index, table: partition, name });
      await briefly(db, sql`alter index ${newName(index)} attach partition ${sql.id(name)}`);
    } catch (error) {
      if (await exists(db, partition)) throw error;
      // It was too old, and was dropped.
    }
  }
}

/** The oldest one: the newest ones are not dropped meanwhile. */
async function partitionWithout(db: Kysely<unknown>, { table, name }: Index): Promise<string | undefined> {
  const { rows } = await sql<{ name: string }>`
    select c.relname as name from pg_inherits p join pg_class c on c.oid = p.inhrelid
    where p.inhparent = ${table}::regclass and not exists (
      select from pg_index x join pg_inherits i on i.inhrelid = x.indexrelid
      where x.indrelid = c.oid and i.inhparent = ${`${name}_new`}::regclass
    )
    order by 1 limit 1`.execute(db);
  return rows[0]?.name;
}

const exists = async (db: Kysely<unknown>, name: string): Promise<boolean> =>
  (await sql`select where to_regclass(${name}) is not null`.execute(db)).rows.length > 0;

const isInvalid = async (db: Kysely<unknown>, name: string): Promise<boolean> =>
  (await sql`select from pg_index where indexrelid = to_regclass(${name}) and not indisvalid`.execute(db))
    .rows.length > 0;

/** Whoever writes waits behind one who waits for a lock. So each wait is short, and there are pauses between them. */
const LOCK_TIMEOUT = '250ms';
const PAUSE_MS = 500;
const TRIES = 120;
const [LOCK_NOT_AVAILABLE, DEADLOCK_DETECTED] = ['55P03', '40P01'];

const briefly = (db: Kysely<unknown>, statement: RawBuilder<unknown>): Promise<void> =>
  patiently(() =>
    db.transaction().execute(async (trx) => {
      await sql`set local lock_timeout = ${sql.lit(LOCK_TIMEOUT)}`.execute(trx);
      await statement.execute(trx);
    }),
  );

async function patiently(attempt: () => Promise<void>): Promise<void> {
  for (let left = TRIES; ; left -= 1) {
    try {
      await attempt();
      return;
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (left === 1 || (code !== LOCK_NOT_AVAILABLE && code !== DEADLOCK_DETECTED)) throw error;
      await sleep(PAUSE_MS);
    }
  }
}

export async function up(db: Kysely<unknown>): Promise<void> {
  await lockAll(db);
  for (const index of INDEXES) {
    if (await isInvalid(db, `${index.name}_new`)) await sql`drop index ${newName(index)}`.execute(db);
    await sql`create index if not exists ${newName(index)} on ${sql.id(index.table)} ${definition(index)}`.execute(
      db,
    );
    await sql`drop index ${sql.id(index.name)}`.execute(db);
    await sql`alter index ${newName(index)} rename to ${sql.id(index.name)}`.execute(db);
  }
  // The list of all sources is merged from the parts of deliveries_source, a day or a few at a time.
  await sql`drop index deliveries_time`.execute(db);
  // A page still has room for new versions of two of its rows.
  await sql`alter table events set (fillfactor = 95)`.execute(db);
  await sql`alter table jobs set (fillfactor = 90)`.execute(db);
  // An older program works. A page of all sources takes it longer, and so do live deliveries: it reads the newest day for each.
  await sql`insert into schema_requirements values (${NAME}, '0012-fewer-index-entries')`.execute(db);
}

/** In the order in which writers lock. */
async function lockAll(db: Kysely<unknown>): Promise<void> {
  await sql`set local lock_timeout = ${sql.lit(LOCK_TIMEOUT)}`.execute(db);
  await sql`savepoint unlocked`.execute(db);
  await patiently(async () => {
    await sql`rollback to unlocked`.execute(db);
    await sql`lock table jobs, events, deliveries in access exclusive mode`.execute(db);
  });
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`delete from schema_requirements where migration = ${NAME}`.execute(db);
  await lockAll(db);
  await sql`alter table jobs set (fillfactor = 85)`.execute(db);
  await sql`alter table events set (fillfactor = 90)`.execute(db);
  await sql`create index deliveries_time on deliveries (received_at, id)`.execute(db);
  for (const { table, name, keys, ties, where } of INDEXES) {
    await sql`drop index ${sql.id(name)}`.execute(db);
    await sql`
      create index ${sql.id(name)} on ${sql.id(table)} ${definition({ keys: [...keys, ...ties], ...(where && { where }) })}`.execute(
      db,
    );
  }
}
