// The promises about senders and the ledger, one by one, under the numbers that docs/promises.md gives them.

// oxlint-disable vitest/no-standalone-expect -- `it` is vitest's test with a fixture, which the rule does not know

import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { deliveries, events, jobs, lockWaits, outbox, waitingRecords } from '../support/ledger.ts';
import { promisedMs } from '../support/patience.ts';
import { startProxy } from '../support/proxy.ts';
import { openRaw, rawPost } from '../support/raw-http.ts';
import { readMetric } from '../support/requests.ts';
import { completed, deliver, failed, newJobId, progress, type Reply, sign } from '../support/sender.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { openSession } from '../support/transaction.ts';
import { startWatchedService, type WatchedService } from '../support/watched.ts';

/** One service for those that test neither a fault nor the environment. `other` is a second replica, for those that ask for it. */
const it = test.extend<{ watched: WatchedService; other: TestService }>({
  watched: [
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what is needed from it
    async ({}, use) => {
      await using watched = await startWatchedService();
      await use(watched);
    },
    { scope: 'file' },
  ],
  other: [
    async ({ watched: { relay, database } }, use) => {
      await using other = await startTestService({ database, exchange: relay.exchange });
      await use(other);
    },
    { scope: 'file' },
  ],
});

/** No acknowledgement, a time to come back, in our words, and well before the sender gives up after 10 s. */
function expectUnavailable(reply: Reply, withinMs: number): void {
  expect(reply).toMatchObject({ status: 503, body: { error: 'unavailable', message: expect.any(String) } });
  expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(reply.ms).toBeLessThan(promisedMs(withinMs));
}

test('guarantee 1: nothing reaches the ledger’s events or the bus unless its signature matched over the raw bytes', async () => {
  await using watched = await startWatchedService({ holdsOutbox: true });
  const { relay, database } = watched;
  const body = JSON.stringify(completed('job_forged'));
  const signature = sign(body);
  const forged: { content?: string; path?: string; signature: string | undefined }[] = [
    { signature: undefined },
    { signature: '' },
    { signature: signature.slice('sha256='.length) },
    { signature: signature.toUpperCase() },
    { signature: `${signature}, ${signature}` },
    { signature: `${signature}00` },
    { signature: sign(body, 'another-secret-of-enough-bytes') },
    { signature: sign(JSON.stringify(completed('job_other'))) },
    { signature, content: `${body} ` },
    { signature, content: body.replace('1250000', '1250001') },
    { signature, content: JSON.stringify(JSON.parse(body), null, 1) },
    { signature, path: '/nobody' },
    { signature, path: '/default%20' },
  ];

  const replies = await Promise.all(
    forged.map(({ content = body, path = '', ...headers }) =>
      deliver(`${relay.webhooks}${path}`, content, { headers: { 'x-service-signature': headers.signature } }),
    ),
  );

  expect(replies.map(({ status }) => status)).toEqual(forged.map(() => 401));
  await expect.poll(() => deliveries(database)).toHaveLength(forged.length);
  expect(await events(database)).toEqual([]);
  expect(await jobs(database)).toEqual([]);
  expect(await outbox(database)).toEqual([]);
  expect(await watched.published()).toEqual([]);
});

it('guarantee 1: a repeated signature header is refused, though one of its values is right', async ({
  watched: { relay },
}) => {
  const jobId = newJobId();
  const body = JSON.stringify(completed(jobId));
  const head = `POST /webhooks HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n`;

  for (const values of [
    [sign(body), sign(body)],
    [sign(body), 'sha256='],
    ['sha256=', sign(body)],
  ]) {
    using connection = await openRaw(relay.service.port);
    connection.write(
      `${head}${values.map((value) => `X-Service-Signature: ${value}\r\n`).join('')}\r\n${body}`,
    );
    expect(await connection.replies()).toMatchObject([{ status: 401 }]);
  }
  expect(await events(relay.database, jobId)).toEqual([]);
});

it('guarantee 2: what was answered with a 2xx is committed, for every other session to see', async ({
  watched: { relay },
}) => {
  const seen = await Promise.all(
    Array.from({ length: 40 }, async (_, index) => {
      const jobId = newJobId();
      const content = [completed(jobId), failed(jobId), progress(jobId, 5), { job_id: jobId, status: 'odd' }][
        index % 4
      ];
      const reply = await deliver(relay.webhooks, JSON.stringify(content));
      const rows = await relay.database.query('select from deliveries where job_id = $1', [jobId]);
      return { status: reply.status, rows: rows.length };
    }),
  );

  expect(seen).toEqual(seen.map(() => ({ status: 202, rows: 1 })));
});

test.for([
  ['the server', ''],
  ['the connection string', '?options=-c%20synchronous_commit%3Doff'],
  ['the server, beside a connection string with options,', '?options=-c%20search_path%3Dpublic&keepalives=1'],
] as const)(
  'guarantee 2: the write waits for the disk, though %s says that it need not',
  async ([, query]) => {
    await using database = await createTestDatabase();
    await database.query(`alter database ${database.name} set synchronous_commit = off`);
    await database.query('create table seen (setting text)');
    await database.query(`
    create function look() returns trigger language plpgsql as $$
    begin insert into seen values (current_setting('synchronous_commit')); return new; end $$`);
    await database.query('create trigger look after insert on events for each row execute function look()');
    await using relay = await startTestService({
      database,
      env: { DATABASE_URL: `${database.url}${query}` },
    });

    await deliver(relay.webhooks, completed(newJobId()));

    expect(await database.query('select * from seen')).toEqual([{ setting: 'on' }]);
  },
);

test('guarantee 2: no answer is given before the commit, and none is a 2xx if the commit fails', async () => {
  await using database = await createTestDatabase();
  await using session = await openSession(database);
  // Runs as the last thing of the commit: waits for our lock, and lets no job called "doomed" through.
  await database.query(`
    create function at_commit() returns trigger language plpgsql as $$
    begin
      perform pg_advisory_xact_lock_shared(1);
      if new.job_id = 'doomed' then raise exception 'the disk is full' using errcode = '53100'; end if;
      return null;
    end $$`);
  await database.query(`
    create constraint trigger at_commit after insert on events deferrable initially deferred
    for each row execute function at_commit()`);
  // Its write waits for the lock for 0.4 of this: longer than we need to see that it does.
  await using relay = await startTestService({ database, env: { ANSWER_DEADLINE_MS: '9500' } });
  await session.query('select pg_advisory_lock(1)');

  const answered: number[] = [];
  const first = deliver(relay.webhooks, completed('job_1')).then((reply) => {
    answered.push(reply.status);
    return reply;
  });
  await expect.poll(() => lockWaits(database)).toEqual([{ kind: 'advisory' }]);
  expect(answered).toEqual([]);
  await session.query('select pg_advisory_unlock(1)');

  expect(await first).toMatchObject({ status: 202, body: { outcome: 'accepted' } });
  expectUnavailable(await deliver(relay.webhooks, completed('doomed')), 5_000);
  expect((await events(database)).map(({ job_id }) => job_id)).toEqual(['job_1']);
  expect((await deliveries(database)).map(({ job_id }) => job_id)).toEqual(['job_1']);
});

it('guarantee 3: 200 concurrent deliveries of one event to two replicas are one event and one message', async ({
  watched: { relay: one, database, bus },
  other,
}) => {
  const jobId = newJobId();

  const replies = await Promise.all(
    Array.from({ length: 200 }, (_, index) => deliver((index % 2 ? one : other).webhooks, completed(jobId))),
  );

  const outcomes = replies.map(({ body }) => body['outcome']);
  expect(outcomes.filter((outcome) => outcome === 'accepted')).toHaveLength(1);
  expect(outcomes.filter((outcome) => outcome === 'duplicate')).toHaveLength(199);
  expect(replies.every(({ status, body }) => status === (body['outcome'] === 'accepted' ? 202 : 200))).toBe(
    true,
  );
  expect(new Set(replies.map(({ body }) => body['event_id']))).toEqual(
    new Set([`default:${jobId}:completed`]),
  );
  expect(await events(database, jobId)).toMatchObject([{ job_id: jobId, repeats: 199 }]);
  expect(await deliveries(database, jobId)).toHaveLength(200);
  expect(await jobs(database, jobId)).toHaveLength(1);

  // A later event of any job is behind every copy that there could be.
  const last = newJobId();
  await deliver(one.webhooks, completed(last));
  await expect.poll(() => bus.ids()).toContain(`default:${last}:completed`);
  expect(bus.ids().filter((id) => id.includes(jobId) || id.includes(last))).toEqual([
    `default:${jobId}:completed`,
    `default:${last}:completed`,
  ]);
});

it('guarantee 3: repeats of many events over two replicas, in any order, are each tallied once', async ({
  watched: { relay: one, database },
  other,
}) => {
  const jobIds = Array.from({ length: 10 }, newJobId);
  const contents = jobIds.flatMap((jobId) => [progress(jobId, 10), progress(jobId, 20), completed(jobId)]);
  const sent = Array.from({ length: 8 }, (_, round) =>
    (round % 2 ? contents : contents.toReversed()).map((content, index) => ({
      content,
      to: (round + index) % 3 ? one : other,
    })),
  ).flat();

  const replies = await Promise.all(sent.map(({ content, to }) => deliver(to.webhooks, content)));

  const accepted = replies.filter(({ body }) => body['outcome'] === 'accepted');
  expect(accepted).toHaveLength(30);
  expect(new Set(accepted.map(({ body }) => body['event_id'])).size).toBe(30);
  expect(replies.filter(({ body }) => body['outcome'] === 'duplicate')).toHaveLength(210);
  const rows = (await events(database)).filter(({ job_id }) => jobIds.includes(job_id));
  expect(rows).toHaveLength(30);
  expect(rows.every(({ repeats }) => repeats === 7)).toBe(true);
});

it('guarantee 6: nothing authentic is lost for its content: it is published, or kept with its body and shown', async ({
  watched,
}) => {
  const { relay, database } = watched;
  const headers = { 'x-request-id': randomUUID() };
  const before = await watched.published();
  const text = JSON.stringify(completed('job_odd'));
  const withMember = (member: string) => `${text.slice(0, -1)},${member}}`;
  const bodies: [string, string | Buffer][] = [
    ['accepted', withMember('"x":"\\u0000","y":"\\ud800","\\udc00":[1e400,-0,12345678901234567890]')],
    ['accepted', JSON.stringify(progress('job_odd', 1, { __proto__: null, constructor: 'x' }))],
    [
      'accepted',
      JSON.stringify(failed('job_odd', { failed_at: `2026-01-15T10:31:00.${'7'.repeat(5_000)}+01:00` })),
    ],
    ['accepted', JSON.stringify(completed(`${'é'.repeat(63)}"\\`))],
    ['accepted', JSON.stringify(completed('job_large', { pad: 'x'.repeat(200_000) }))],
    ['accepted', `${text.replace('job_odd', 'job_zeros').slice(0, -1)},"x":1${'0'.repeat(100_000)}1}`],
    ['quarantined', withMember('"x":{"y":1,"y":2}')],
    ['quarantined', withMember(`"x":${'['.repeat(100_000)}${']'.repeat(100_000)}`)],
    ['quarantined', text.replace('1250000', '9007199254740993')],
    [
      'quarantined',
      JSON.stringify({ job_id: 'job_odd', status: '"\\\'; drop table events; --'.replaceAll(' ', '_') }),
    ],
    ['malformed', Buffer.from([0xff, 0x00, 0xfe])],
    ['malformed', `{"job_id":"job_odd","job_id":"job_even","status":"completed"}`],
    ['malformed', '\0'.repeat(1_000)],
  ];

  for (const [, body] of bodies) await deliver(relay.webhooks, body, { headers });

  const rows = (await deliveries(database)).filter((row) => row.headers.includes(headers['x-request-id']));
  expect(rows.map(({ outcome }) => outcome)).toEqual(bodies.map(([outcome]) => outcome));
  for (const [index, [, body]] of bodies.entries()) {
    expect(rows[index]?.body?.equals(Buffer.from(body))).toBe(true);
  }
  expect(rows.filter(({ outcome }) => outcome !== 'accepted').every(({ reason }) => reason)).toBe(true);
  expect((await watched.published()).slice(before.length)).toHaveLength(6);
});

test('guarantee 6: an event that the ledger refuses for its values is quarantined, and others in its batch are not', async () => {
  await using watched = await startWatchedService({ env: { BATCHES_IN_FLIGHT: '1' } });
  const { relay, database } = watched;
  const odd = newJobId();
  // Stands for whatever Postgres may refuse that we do not know of.
  await database.query(`alter table events add constraint refuses check (job_id <> '${odd}')`);

  const jobIds = [...Array.from({ length: 20 }, newJobId), odd];
  // A batch that waits for the lock keeps all others together in the next one.
  await using session = await openSession(database);
  await session.query('begin');
  await session.query('lock table jobs in access exclusive mode');
  const ahead = deliver(relay.webhooks, completed(newJobId()));
  await expect.poll(() => waitingRecords(database)).toHaveLength(1);
  const sent = Promise.all(jobIds.map((jobId) => deliver(relay.webhooks, completed(jobId))));
  const waiting = () => readMetric(relay.operators, 'tallyhook_write_queue_deliveries');
  await expect.poll(waiting).toBe(jobIds.length + 1);
  await session.query('rollback');
  await ahead;
  const replies = await sent;

  expect(replies.at(-1)).toMatchObject({ status: 202, body: { outcome: 'quarantined', event_id: null } });
  expect(replies.slice(0, -1).map(({ body }) => body['outcome'])).toEqual(Array(20).fill('accepted'));
  const kept = (await deliveries(database)).filter(({ outcome }) => outcome === 'quarantined');
  expect(kept).toMatchObject([{ job_id: odd, reason: 'the ledger refused its values' }]);
  expect(kept[0]?.body?.toString()).toBe(JSON.stringify(completed(odd)));
  expect(await watched.published()).toHaveLength(21);
});

test('guarantee 7: while the ledger is locked, deliveries get 503 in time, and are accepted when it is free again', async () => {
  // After a statement that was given up, the intake opens new connections: on a busy machine within the deadline, too.
  await using relay = await startTestService({ env: { ANSWER_DEADLINE_MS: String(promisedMs(1_000)) } });
  await using session = await openSession(relay.database);
  await session.query('begin');
  await session.query('lock table jobs in access exclusive mode');

  const contents = Array.from({ length: 20 }, () => completed(newJobId()));
  const replies = await Promise.all(contents.map((content) => deliver(relay.webhooks, content)));

  for (const reply of replies) expectUnavailable(reply, 3_000);
  await session.query('rollback');
  expect(await events(relay.database)).toEqual([]);
  const again = await Promise.all(contents.map((content) => deliver(relay.webhooks, content)));
  expect(again.map(({ body }) => body['outcome'])).toEqual(contents.map(() => 'accepted'));
});

test('guarantee 7: a job whose row is held by a stuck session stalls no other job', async () => {
  await using relay = await startTestService({ env: { ANSWER_DEADLINE_MS: '2000', BATCHES_IN_FLIGHT: '2' } });
  const stuck = newJobId();
  await deliver(relay.webhooks, progress(stuck, 1));
  await using session = await openSession(relay.database);
  await session.query('begin');
  await session.query('select from jobs where job_id = $1 for update', [stuck]);

  const held = deliver(relay.webhooks, completed(stuck));
  await expect.poll(() => lockWaits(relay.database)).not.toEqual([]);
  const other = await deliver(relay.webhooks, completed(newJobId()));

  expect(other).toMatchObject({ status: 202, body: { outcome: 'accepted' } });
  expectUnavailable(await held, 4_000);
  await session.query('rollback');
  expect(await deliver(relay.webhooks, completed(stuck))).toMatchObject({ status: 202 });
});

test('guarantee 7: when Postgres falls silent the answer is 503 in time, and when it speaks again all is well', async () => {
  await using database = await createTestDatabase();
  await using proxy = await startProxy(database.url, { defaultPort: 5432 });
  await using relay = await startTestService({
    database,
    env: { DATABASE_URL: proxy.url, ANSWER_DEADLINE_MS: '1000', SHUTDOWN_GRACE_MS: '1000' },
  });
  const content = completed(newJobId());

  proxy.stall();
  const replies = await Promise.all([1, 2, 3].map(() => deliver(relay.webhooks, content)));
  for (const reply of replies) expectUnavailable(reply, 3_000);
  await expect.poll(() => fetch(`${relay.intake}/readyz`).then(({ status }) => status)).toBe(503);
  expect((await fetch(`${relay.intake}/livez`)).status).toBe(200);

  proxy.heal();
  await expect
    .poll(() => deliver(relay.webhooks, content).then(({ status }) => Math.floor(status / 100)))
    .toBe(2);
  expect(await events(database)).toHaveLength(1);
  await expect.poll(() => fetch(`${relay.intake}/readyz`).then(({ status }) => status)).toBe(200);
});

test('guarantee 7: while Postgres refuses connections the answer is 503 at once, and no restart is needed afterwards', async () => {
  await using database = await createTestDatabase();
  await using proxy = await startProxy(database.url, { defaultPort: 5432 });
  await using relay = await startTestService({ database, env: { DATABASE_URL: proxy.url } });
  const content = completed(newJobId());

  proxy.refuse();
  proxy.cut();
  for (let sent = 0; sent < 3; sent++) expectUnavailable(await deliver(relay.webhooks, content), 3_000);
  proxy.heal();

  expect(await deliver(relay.webhooks, content)).toMatchObject({
    status: 202,
    body: { outcome: 'accepted' },
  });
});

test('guarantee 7: an answer whose commit was not heard of is 503, and the repeat finds the event', async () => {
  await using database = await createTestDatabase();
  await using proxy = await startProxy(database.url, { defaultPort: 5432 });
  await using session = await openSession(database);
  await using relay = await startTestService({ database, env: { DATABASE_URL: proxy.url } });
  const content = completed(newJobId());
  await session.query('begin');
  await session.query('lock table events in access exclusive mode');

  const first = deliver(relay.webhooks, content);
  await expect.poll(() => waitingRecords(database)).toHaveLength(1);
  // The statement has reached the server and will commit; what it says of it never reaches us.
  proxy.cut();
  await session.query('rollback');

  expectUnavailable(await first, 6_000);
  await expect.poll(() => events(database)).toHaveLength(1);
  expect(await deliver(relay.webhooks, content)).toMatchObject({
    status: 200,
    body: { outcome: 'duplicate' },
  });
});

test('guarantee 8: every attempt leaves a trace, the refused ones without their body', async () => {
  await using relay = await startTestService({ env: { BODY_LIMIT_BYTES: '1024' } });
  const jobId = newJobId();
  const planted = 'planted'.repeat(10);

  await deliver(relay.webhooks, completed(jobId));
  await deliver(relay.webhooks, completed(jobId));
  await deliver(relay.webhooks, completed(jobId, { cost_cents: 1 }));
  await deliver(relay.webhooks, { job_id: newJobId(), status: 'odd' });
  await deliver(relay.webhooks, '[]');
  await deliver(relay.webhooks, planted, { headers: { 'x-service-signature': undefined } });
  await deliver(`${relay.webhooks}/nobody`, planted);
  await deliver(relay.webhooks, planted.repeat(100));
  await deliver(relay.webhooks, planted, { headers: { 'content-encoding': 'br' } });
  await deliver(relay.webhooks, planted, { method: 'DELETE' });
  using connection = await openRaw(relay.service.port);
  connection.write(rawPost(planted, { 'Content-Length': '500' }));
  connection.end();

  await expect.poll(() => deliveries(relay.database)).toHaveLength(11);
  const rows = await deliveries(relay.database);
  const traces = rows.map(({ outcome, http_status }) => `${http_status} ${outcome}`);
  expect(traces.toSorted((a, b) => a.localeCompare(b))).toEqual([
    '200 conflict',
    '200 duplicate',
    '202 accepted',
    '202 quarantined',
    '400 malformed',
    '400 refused',
    '401 unauthorized',
    '401 unauthorized',
    '405 refused',
    '413 refused',
    '415 refused',
  ]);
  expect(rows.filter(({ body }) => body?.includes('planted'))).toEqual([]);
});

test('guarantee 8: beyond their rate, refused attempts are counted, and none is missing', async () => {
  await using database = await createTestDatabase();
  {
    await using relay = await startTestService({ database, env: { REFUSED_ROWS_PER_MINUTE: '3' } });
    await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        deliver(index % 2 ? relay.webhooks : `${relay.webhooks}/nobody`, 'x', {
          headers: { 'x-service-signature': 'wrong' },
        }),
      ),
    );
    expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 202 });
  } // the counts so far are written at the latest when the service stops

  const rows = await database.query<{ source: string; attempts: number; rows: number }>(`
    select source, sum(attempts)::int as attempts, sum(rows)::int as rows from (
      select source, 1 as attempts, 1 as rows from deliveries where outcome = 'unauthorized'
      union all select source, unauthorized, 0 from refusals
    ) as traces group by source order by source`);
  expect(rows.map(({ source, attempts }) => ({ source, attempts }))).toEqual([
    { source: 'default', attempts: 15 },
    { source: 'unknown', attempts: 15 },
  ]);
  // At most twice the rate, if the minute was over in between.
  for (const { rows: written } of rows) expect(written).toBeLessThanOrEqual(6);
});
