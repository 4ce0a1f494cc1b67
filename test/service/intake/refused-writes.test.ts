// Whom a refusal of Postgres blames: a delivery for what it brought, and nothing else. Why a write was refused is in the log, in few
// lines and without what the delivery held. A partition that is missing is made at once.

import { expect, test } from 'vitest';
import { createBatchWriter } from '../../../src/intake/batch-writer.ts';
import { makePartitions } from '../../../src/ledger/upkeep/partitions.ts';
import { recordDeliveries } from '../../../src/ledger/recording/record.ts';
import { release } from '../../../src/operators/quarantine/release.queries.ts';
import { IS_SHORT_RUN } from '../../only-in-all.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventRecord } from '../../support/records.ts';
import { connectTestDatabase } from '../../support/relay.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';

const now = () => performance.now();

const dropToday = (database: TestDatabase) =>
  database.query(
    `do $$ begin execute 'drop table ' || to_char(now() at time zone 'UTC', '"deliveries_"YYYYMMDD'); end $$`,
  );

const failures = ({ log }: TestService) =>
  log
    .filter(({ msg }) => String(msg).startsWith('a write failed'))
    .map(({ kind, code, msg, level }) => ({ kind, code, msg, level }));

const LIMITS = {
  queueDeliveries: 1_000,
  queueBytes: 1e8,
  batchDeliveries: 500,
  batchBytes: 1e8,
  batchesInFlight: 2,
};

test('a number that the ledger draws twice is not blamed on the delivery, which is accepted when it comes again', async () => {
  await using database = await createTestDatabase();
  await using relay = await startTestService({ database });
  for (let nth = 0; nth < 3; nth++) await deliver(relay.webhooks, completed(newJobId()));
  // As after a restore of data alone.
  await database.query(`select setval('events_sequence_seq', (select min(sequence) from events), false)`);
  const event = completed(newJobId());

  const statuses: number[] = [];
  for (let nth = 0; nth < 4; nth++) statuses.push((await deliver(relay.webhooks, event)).status);

  expect(statuses).toEqual([503, 503, 503, 202]);
  expect(await database.query(`select from deliveries where outcome = 'quarantined'`)).toEqual([]);
  const because =
    'the database refused what the ledger itself writes: after a restore its sequences may be behind';
  expect(failures(relay)).toEqual([
    {
      kind: 'refused_by_itself',
      code: '23505',
      msg: `a write failed: ${because} (events_pkey)`,
      level: 50,
    },
  ]);
});

test('an event that a rule of others refuses is quarantined once others are accepted, and comes again while none is', async () => {
  await using database = await createTestDatabase();
  await using relay = await startTestService({ database });
  await database.query(`alter table events add constraint only_some check (false)`);
  const answers = async (jobs: string[]) => {
    const replies = await Promise.all(jobs.map((job) => deliver(relay.webhooks, completed(job))));
    return replies.map(({ status, body }) => body['outcome'] ?? status);
  };

  expect(await answers(['job_a', 'job_b'])).toEqual([503, 503]);
  expect(await answers(['job_a'])).toEqual([503]);
  await database.query('alter table events drop constraint only_some');
  await database.query(`alter table events add constraint only_some check (job_id <> 'job_a')`);
  expect(await answers(['job_a'])).toEqual([503]); // perhaps it is about all
  expect(await answers(['job_b'])).toEqual(['accepted']);
  expect(await answers(['job_a'])).toEqual(['quarantined']);

  expect(failures(relay)).toMatchObject([
    { kind: 'added_rule', code: '23514', msg: expect.stringContaining('(only_some)') },
  ]);
});

test('an authentic delivery that cannot be recorded as understood is kept with its body, and can be released later', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  await using relay = await startTestService({ database });
  const jobId = newJobId();
  await database.query(`
    alter table deliveries add constraint no_headers check (headers = '{}');
    alter table events drop constraint events_status_check;
    alter table events add constraint events_status_check check (status <> 'completed')`);
  const bodies = [completed(jobId), { ...completed(jobId), status: 'paused' }, '{"no": "job"}'];

  const answers = [];
  for (const body of bodies) answers.push(await deliver(relay.webhooks, body));

  expect(answers.map(({ status, body }) => [status, (body as { outcome?: string }).outcome])).toEqual([
    [202, 'quarantined'],
    [202, 'quarantined'],
    [400, undefined],
  ]);
  const kept = await database.query<{ id: string; outcome: string; text: string; job_id: string | null }>(
    `select id, outcome, job_id, reason, convert_from(body, 'UTF8') as text from deliveries order by id`,
  );
  expect(kept).toMatchObject(
    ['quarantined', 'quarantined', 'malformed'].map((outcome, nth) => {
      const body = bodies[nth];
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      return { outcome, text, job_id: null, reason: 'it could not be recorded as understood, only its body' };
    }),
  );

  await database.query('alter table events drop constraint events_status_check');
  const which = { ids: [kept[0]?.id ?? ''] };
  const order = { which, sources: null, after: undefined, limit: 100, by: 'a test' };
  const { releases } = await connection.db.transaction().execute((trx) => release(trx, order));
  expect(releases).toMatchObject([{ result: 'accepted', event_id: `default:${jobId}:completed` }]);
});

test('a batch that finds no partition is refused by one statement, and the next one passes', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  await dropToday(database);
  const writes: number[] = [];
  const errors: unknown[] = [];
  const writer = createBatchWriter({
    record: (batch) => {
      writes.push(batch.length);
      return recordDeliveries(connection, batch);
    },
    limits: LIMITS,
    backpressure: { isFull: () => false, onEase: () => {} },
    now,
    observe: ({ error }) => errors.push(error),
  });
  const submitAll = () =>
    Promise.allSettled(
      Array.from({ length: 500 }, () => writer.submit(eventRecord(completed(newJobId())), now() + 60_000)),
    );

  const refused = await submitAll();

  expect(writes).toEqual([500]);
  expect(errors).toEqual([expect.objectContaining({ code: '23514' })]);
  expect(new Set(refused.map((result) => result.status === 'rejected' && String(result.reason)))).toEqual(
    new Set([
      'UnavailableError: the ledger did not confirm the write: there is no partition for today; it is made now',
    ]),
  );
  await makePartitions(connection);
  expect((await submitAll()).every(({ status }) => status === 'fulfilled')).toBe(true);
  expect(await database.query('select from deliveries')).toHaveLength(500);
});

test('a partition that is missing is made as soon as a delivery finds none', async () => {
  await using database = await createTestDatabase();
  await using relay = await startTestService({ database });
  await dropToday(database);

  expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 503 });

  await waitFor(async () =>
    expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 202 }),
  );
  expect(failures(relay)[0]).toEqual({
    kind: 'no_partition',
    code: '23514',
    msg: 'a write failed: there is no partition for today; it is made now',
    level: 50,
  });
  expect(relay.log).toContainEqual(expect.objectContaining({ msg: 'partitions were missing' }));
});

test.skipIf(IS_SHORT_RUN)(
  'a refused write is logged once for each kind, with its SQLSTATE and without its values',
  async () => {
    await using database = await createTestDatabase();
    await using relay = await startTestService({ database });
    const secret = 'planted-in-a-body';
    const refuse = async (condition: string) => {
      await database.query(`
      create or replace function refuse() returns trigger language plpgsql as $$
      declare quoted constant text := convert_from(new.body, 'UTF8');
      begin raise exception 'quotes %', quoted using errcode = '${condition}', detail = quoted; end $$`);
      for (let nth = 0; nth < 3; nth++) {
        expect(await deliver(relay.webhooks, completed(newJobId(), { secret }))).toMatchObject({
          status: 503,
        });
      }
    };
    await database.query(
      `create function refuse() returns trigger language plpgsql as $$ begin return new; end $$`,
    );
    await database.query(
      'create trigger refuse before insert on deliveries for each row execute function refuse()',
    );

    const kinds: Record<string, string> = {
      disk_full: '53100',
      read_only: '25006',
      not_permitted: '42501',
      too_many_connections: '53300',
      statement_timeout: '57014',
      lock_timeout: '55P03',
      shutdown: '57P01',
      broken_storage: '58030',
      other: 'F0000',
    };
    for (const code of Object.values(kinds)) await refuse(code);

    expect(failures(relay).map(({ kind, code }) => [kind, code])).toEqual(Object.entries(kinds));
    expect(failures(relay)[0]?.msg).toBe("a write failed: the database's disk is full");
    // Each delivery's own line says it too.
    const lines = relay.log.filter(({ msg, status }) => msg === 'delivery' && status === 503);
    expect(lines).toHaveLength(3 * Object.keys(kinds).length);
    expect(lines[0]).toMatchObject({
      err: { code: 'ledger', message: "the ledger did not confirm the write: the database's disk is full" },
    });
    expect(JSON.stringify(relay.log)).not.toContain(secret);
  },
);
