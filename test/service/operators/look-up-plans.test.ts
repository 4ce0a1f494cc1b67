// What statements of operators read that look some rows up and sort them: no table whole, and no index, whatever order it has.

import { type Kysely, type Transaction, sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../../src/ledger/index.ts';
import { readStory } from '../../../src/operators/story/queries.ts';
import type { Decision } from '../../../src/operators/outbox/decide.queries.ts';
import { findEvents } from '../../../src/operators/events/by-id.queries.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { costOf } from '../../support/history.ts';
import { connectTestDatabase, decideIn } from '../../support/relay.ts';

/** Of jobs, events, deliveries, and lines of the operator log. */
const ROWS = 6_000;
const RETURNED = 200;
const WANTED = 20;
/** A step finds a row, and another one changes it. */
const READ_MAX = WANTED * 10;

const jobOf = (number: number) => `job_${String(number).padStart(8, '0')}`;

let database: TestDatabase;
let connection: ReturnType<typeof connectTestDatabase>;
beforeAll(async () => {
  database = await createTestDatabase();
  connection = connectTestDatabase(database, { reading: 'planned' });
  await database.query(`
    insert into jobs (source, job_id, first_seen_at, last_seen_at, completed_at, last_status, is_held)
    select 'default', 'job_' || lpad(g::text, 8, '0'), now(), now(), now(), 'completed', g <= ${RETURNED}
    from generate_series(1, ${ROWS}) g`);
  await database.query(`
    with event as (
      insert into events (source, job_id, status, late, recorded_at, delivery_id, content_hash, repeats)
      select source, job_id, 'completed', false, now(), gen_random_uuid(), '', 0 from jobs order by job_id
      returning *
    ), delivery as (
      insert into deliveries (id, received_at, source, outcome, http_status, job_id, status, event_sequence, path, headers)
      select delivery_id, recorded_at, source, 'accepted', 202, job_id, status, sequence, '/webhooks', '{}' from event
    )
    insert into outbox_held (sequence, source, job_id, status, late, recorded_at, state, attempts)
    select sequence, source, job_id, status, late, recorded_at, 'returned', 1 from event order by job_id limit ${RETURNED}`);
  await database.query(`
    insert into operator_log (actor, role, action, source, subject)
    select 'alice', 'operator', 'event.retry', source, source || ':' || job_id || ':completed' from jobs`);
  await database.query('vacuum analyze jobs, events, deliveries, outbox_held, operator_log');
});
afterAll(async () => {
  await connection.close();
  await database[Symbol.asyncDispose]();
});

/** Of this connection, in tables with many rows. */
async function rowsSoFar(trx: Transaction<Database>): Promise<number> {
  const { rows } = await sql<{ rows: number }>`
    select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as rows from pg_stat_xact_user_tables
    where relname ~ '^(jobs|events|deliveries|operator_log)'`.execute(trx);
  return rows[0]?.rows ?? 0;
}

/** How many rows `ask` reads. What it changes is undone. */
async function rowsRead(ask: (trx: Transaction<Database>) => Promise<unknown>): Promise<number> {
  const undo = new Error('undone');
  let read = 0;
  const asked = connection.db.transaction().execute(async (trx) => {
    const before = await rowsSoFar(trx);
    await ask(trx);
    read = (await rowsSoFar(trx)) - before;
    throw undo;
  });
  await expect(asked).rejects.toBe(undo);
  return read;
}

test('events are found by their ids', async () => {
  const ids = Array.from({ length: WANTED }, (_, index) => `default:${jobOf(1 + index * 7)}:completed`);
  const find = async (db: Kysely<Database>) => expect(await findEvents(db, ids)).toHaveLength(WANTED);
  expect(await rowsRead(find)).toBeLessThanOrEqual(READ_MAX);
});

test.for<Decision>(['retry', 'discard', 'park'])(
  'a %s of many returned entries reads them and their jobs',
  async (decision) => {
    const decide = async (trx: Transaction<Database>) => {
      const { decided } = await decideIn(trx, decision, { filter: { state: 'returned' } }, WANTED);
      expect(decided).toHaveLength(WANTED);
    };
    expect(await rowsRead(decide)).toBeLessThanOrEqual(READ_MAX);
  },
);

async function retryOfJob(trx: Transaction<Database>): Promise<void> {
  const filter = { state: 'returned', job_id: jobOf(RETURNED) } as const;
  expect((await decideIn(trx, 'retry', { filter })).decided).toHaveLength(1);
}

test('a retry of the entries of one job reads its events', async () => {
  expect(await rowsRead(retryOfJob)).toBeLessThanOrEqual(WANTED);
});

test('the story of a job reads what there is of it', async () => {
  const job = { source: 'default', jobId: jobOf(RETURNED) };
  const page = { after: null, limit: 50 };
  const story = await readStory(connection.db, job, page);
  expect(story?.items.map(({ what }) => what)).toEqual(['delivery', 'event', 'operator', 'waiting']);
  const costs = await costOf(connection, (db) => readStory(db, job, page));
  for (const { rows, text } of costs) expect.soft(rows, text).toBeLessThanOrEqual(WANTED);
});
