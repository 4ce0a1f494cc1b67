import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Delivery } from '../../../src/operators/deliveries/contract.ts';
import { Publication } from '../../../src/operators/publications/contract.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type Listening, listen, type LiveEvent, parseEvent } from '../../support/live-events.ts';
import { type Operators, operators } from '../../support/operators.ts';
import { promisedMs } from '../../support/patience.ts';
import { completed, deliver, newJobId, progress } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { openSession } from '../../support/transaction.ts';

const byText = (a: string, b: string) => (a < b ? -1 : 1);

/** `delivery completed accepted`, `publication completed` */
function inShort({ event, value }: LiveEvent): string {
  if (event === 'publication') return `${event} ${String(value['event_id']).split(':')[2]}`;
  return [event, value['status'], value['outcome']].join(' ');
}

const jobsOf = ({ events }: Listening, event = 'delivery') =>
  events.filter((found) => found.event === event).map(({ value }) => value['job_id']);

/** Deliveries of other replicas, straight in the ledger. */
const insertMany = (database: Pick<TestDatabase, 'query'>, count: number, reasonLength = 0) =>
  database.query(
    `insert into deliveries (id, received_at, source, outcome, http_status, path, headers, reason)
     select gen_random_uuid(), clock_timestamp(), 'default', 'refused', 413, '/webhooks', '{}', repeat('x', $2::int)
     from generate_series(1, $1)`,
    [count, reasonLength],
  );

describe('two replicas', () => {
  let database: TestDatabase;
  let one: TestService;
  let two: TestService;
  let viewer: Operators;

  beforeAll(async () => {
    database = await createTestDatabase();
    [one, two] = await Promise.all([startTestService({ database }), startTestService({ database })]);
    viewer = await operators(one, { role: 'viewer' });
  });
  afterAll(async () => {
    await Promise.all([one[Symbol.asyncDispose](), two[Symbol.asyncDispose]()]);
    await database[Symbol.asyncDispose]();
  });

  test('deliveries and publications of both come once, as the objects of the lists', async () => {
    const before = newJobId();
    await deliver(one.webhooks, completed(before));
    await using listening = await listen(viewer);
    const [first, second] = [newJobId(), newJobId()];
    await deliver(one.webhooks, completed(first));
    await deliver(two.webhooks, completed(second));
    await deliver(two.webhooks, completed(second));

    await expect.poll(() => jobsOf(listening)).toEqual([first, second, second]);
    await expect
      .poll(() => jobsOf(listening, 'publication'))
      .toEqual(expect.arrayContaining([first, second]));

    expect(listening.response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(listening.response.headers.get('cache-control')).toBe('no-store');
    for (const { event, id, value } of listening.events) {
      expect((event === 'delivery' ? Delivery : Publication).strict().parse(value)).toEqual(value);
      expect(id).toBe(value['id']);
    }
    const ofSecond = listening.events.filter(({ value }) => value['job_id'] === second);
    // The event is published before or after its second delivery.
    const inOrder = [
      ...ofSecond.slice(0, 1),
      ...ofSecond.slice(1).toSorted((a, b) => (a.event < b.event ? -1 : 1)),
    ];
    expect(inOrder).toMatchObject([
      { value: { outcome: 'accepted', event_id: `default:${second}:completed` } },
      { value: { outcome: 'duplicate', event_id: `default:${second}:completed` } },
      { event: 'publication', value: { result: 'returned', event_id: `default:${second}:completed` } },
    ]);
    expect(new Set(listening.events.map(({ id }) => id)).size).toBe(listening.events.length);
  });

  test('what commits late is seen all the same, once, and so is what came before and after it', async () => {
    await using listening = await listen(viewer, '?events=deliveries');
    await using late = await openSession(database);
    await late.query('begin');
    await late.query(
      `insert into deliveries (id, received_at, source, outcome, http_status, path, headers, job_id)
       values (gen_random_uuid(), now(), 'default', 'refused', 413, '/webhooks', '{}', 'late')`,
    );
    const sent: string[] = [];
    // At least two polls pass before it commits.
    for (const _ of [1, 2]) {
      sent.push(newJobId());
      await deliver(one.webhooks, completed(sent.at(-1) ?? ''));
      await expect.poll(() => jobsOf(listening)).toEqual(sent);
    }
    await late.query('commit');
    await expect.poll(() => jobsOf(listening)).toEqual([...sent, 'late']);

    const last = newJobId();
    await deliver(one.webhooks, completed(last));
    await expect.poll(() => jobsOf(listening)).toEqual([...sent, 'late', last]);
  });

  test.for([
    [
      '?events=deliveries',
      ['delivery completed accepted', 'delivery completed duplicate', 'delivery processing accepted'],
    ],
    ['?events=publications', ['publication completed', 'publication processing']],
    ['?outcome=duplicate', ['delivery completed duplicate']],
    ['?result=returned', ['publication completed', 'publication processing']],
    ['?result=confirmed', []],
    ['?status=processing', ['delivery processing accepted', 'publication processing']],
    [
      '?kind=completed',
      ['delivery completed accepted', 'delivery completed duplicate', 'publication completed'],
    ],
    ['?source=team-a', []],
  ] as const)('%s', async ([query, wanted]) => {
    const job = newJobId();
    await using all = await listen(viewer, `?job_id=${job}`);
    await using some = await listen(viewer, query);
    await deliver(one.webhooks, completed(job));
    await deliver(one.webhooks, completed(job));
    await deliver(one.webhooks, progress(job, 5));
    await expect.poll(() => all.events.length).toBe(5);
    expect(some.events.map(inShort).toSorted(byText)).toEqual(wanted);
  });

  test('a token that is limited hears of its own sources alone, and may not name another', async () => {
    const limited = await operators(one, { role: 'viewer', sources: ['team-a'] });
    await using all = await listen(viewer);
    await using own = await listen(limited);
    await database.query(
      `insert into deliveries (id, received_at, source, outcome, http_status, path, headers, job_id)
       select gen_random_uuid(), now(), source, 'refused', 413, '/webhooks', '{}', source
       from unnest(array['default', 'team-a', 'unknown']) as source`,
    );

    await expect
      .poll(() => jobsOf(all).map(String).toSorted(byText))
      .toEqual(['default', 'team-a', 'unknown']);
    expect(jobsOf(own)).toEqual(['team-a']);
    expect((await limited.get('/live?source=default')).status).toBe(403);
  });

  test.for(['outcome=lost', 'events=both', 'status=queued', 'cursor=1'])('?%s is a 400', async (query) => {
    expect((await viewer.get(`/live?${query}`)).status).toBe(400);
  });

  test('the ninth listener with one token is turned away, and the place of one that hung up is free', async () => {
    const crowd = await operators(one, { role: 'viewer' });
    const held = await Promise.all(Array.from({ length: 8 }, () => listen(crowd)));

    expect(await crowd.get('/live')).toMatchObject({ status: 429, body: { error: 'too_many_listeners' } });
    await held[0]?.[Symbol.asyncDispose]();
    await expect
      .poll(async () => {
        await using again = await listen(crowd);
        return again.response.status;
      })
      .toBe(200);
    await Promise.all(held.map((listening) => listening[Symbol.asyncDispose]()));
  });

  test('more than a look shows is told as a gap', async () => {
    await using listening = await listen(viewer, '?events=deliveries');

    await insertMany(database, 1_500);
    await expect.poll(() => listening.events.length).toBeGreaterThan(1_000);

    const gaps = listening.events.filter(({ event }) => event === 'gap');
    expect(gaps).toEqual([
      {
        event: 'gap',
        id: undefined,
        value: {
          because: 'too_many',
          list: 'deliveries',
          left_out: 500,
          since: expect.stringMatching(/^\d{4}-.*Z$/),
        },
      },
    ]);
    await expect.poll(() => jobsOf(listening).length).toBe(1_000);
  });

  test('a reader that stops reading loses the oldest, is told how many, and holds up nobody', async () => {
    const rows = 900;
    await using marked = await listen(viewer, '?job_id=after-all-that');
    using slow = await openPaused(one, viewer.value, '/api/v1/live?outcome=refused');

    await insertMany(database, rows, 30_000);
    const marker = () => deliver(one.webhooks, completed('after-all-that'));
    await marker();
    await expect.poll(() => jobsOf(marked)).toEqual(['after-all-that']);
    const events = await slow.readUntil((found) => {
      const missed = found.reduce((sum, { value }) => sum + Number(value['left_out'] ?? 0), 0);
      return missed + found.filter(({ event }) => event === 'delivery').length >= rows;
    });

    const gaps = events.filter(({ event }) => event === 'gap');
    const missed = gaps.reduce((sum, { value }) => sum + Number(value['left_out']), 0);
    expect(new Set(gaps.map(({ value }) => value['because']))).toEqual(new Set(['too_slow']));
    expect(missed).toBeGreaterThan(rows / 2);
    expect(new Set(events.map(({ id }) => id).filter(Boolean)).size + missed).toBe(rows);
  });
});

test('Postgres is asked for news only while somebody listens', async () => {
  await using relay = await startTestService();
  const viewer = await operators(relay, { role: 'viewer' });
  const lastAsked = async () => {
    const [row] = await relay.database.query<{ age: number | null }>(
      `select extract(epoch from now() - max(query_start))::float8 as age from pg_stat_activity
       where datname = current_database() and application_name = 'tallyhook operators' and query like '%asked_at%'`,
    );
    return row?.age ?? null;
  };

  expect(await lastAsked()).toBeNull();
  const listening = await listen(viewer);
  expect(await lastAsked()).toBeLessThan(2);
  await listening[Symbol.asyncDispose]();
  // Every second would keep it below.
  await expect.poll(lastAsked).toBeGreaterThan(2.5);
});

test('a stop ends those who listen and waits for none, not even for one that does not read', async () => {
  const relay = await startTestService({ env: { SHUTDOWN_GRACE_MS: '20000', SHUTDOWN_DELAY_MS: '0' } });
  const viewer = await operators(relay, { role: 'viewer' });
  const listening = await listen(viewer);
  const marked = await listen(viewer, '?events=deliveries&outcome=accepted');
  using slow = await openPaused(relay, viewer.value, '/api/v1/live');
  await insertMany(relay.database, 900, 30_000);
  await deliver(relay.webhooks, completed(newJobId()));
  await expect.poll(() => marked.events.length).toBe(1);

  const startedMs = performance.now();
  await relay[Symbol.asyncDispose]();

  expect(performance.now() - startedMs).toBeLessThan(promisedMs(5_000));
  expect(await marked.ended).toBe('ended');
  await listening.ended;
  await slow.closed();
});

test('a stop waits for no connection on which nothing was ever asked', async () => {
  const relay = await startTestService({ env: { SHUTDOWN_GRACE_MS: '20000' } });
  const sockets = [relay.service.operatorPort, relay.service.port].map((port) => connect(port, '127.0.0.1'));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));

  const startedMs = performance.now();
  await relay[Symbol.asyncDispose]();

  expect(performance.now() - startedMs).toBeLessThan(promisedMs(5_000));
  await expect.poll(() => sockets.every((socket) => socket.closed)).toBe(true);
});

test('while the ledger cannot be read nobody is let in, and afterwards nothing is missed', async () => {
  await using relay = await startTestService();
  const viewer = await operators(relay, { role: 'viewer' });
  await relay.database.query('alter table publications rename to publications_away');
  expect((await viewer.get('/live')).status).toBe(500);
  await relay.database.query('alter table publications_away rename to publications');

  await using listening = await listen(viewer);
  await relay.database.query('alter table publications rename to publications_away');
  const job = newJobId();
  await deliver(relay.webhooks, completed(job));
  // The deliveries can be read all the while.
  await expect.poll(() => jobsOf(listening)).toEqual([job]);
  expect(relay.log.filter(({ msg }) => msg === 'nothing new can be read for those who listen')).toHaveLength(
    1,
  );
  await relay.database.query('alter table publications_away rename to publications');
  await expect.poll(() => jobsOf(listening, 'publication')).toEqual([job]);
  expect(jobsOf(listening)).toEqual([job]);
});

/** A listener on a bare socket that has read the head of the answer and then stops. */
async function openPaused(relay: TestService, token: string, path: string) {
  const socket = connect({ port: relay.service.operatorPort, host: '127.0.0.1' });
  socket.on('error', () => {});
  let text = '';
  const { promise: began, resolve } = Promise.withResolvers<void>();
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
    if (text.includes('\r\n\r\n')) resolve();
  });
  socket.write(`GET ${path} HTTP/1.1\r\nHost: relay.test\r\nAuthorization: Bearer ${token}\r\n\r\n`);
  await began;
  socket.pause();
  expect(text).toMatch(/^HTTP\/1\.1 200 /);
  return {
    readUntil: async (isDone: (found: ReturnType<typeof parse>) => boolean) => {
      socket.resume();
      await expect.poll(() => isDone(parse(text))).toBe(true);
      return parse(text);
    },
    closed: async () => {
      socket.resume();
      await expect.poll(() => socket.closed).toBe(true);
    },
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

/** Of an answer in chunks, whose lengths stand on lines of their own. */
const parse = (text: string) =>
  unchunk(text.slice(text.indexOf('\r\n\r\n') + 4))
    .split('\n\n')
    .slice(0, -1)
    .flatMap(parseEvent);

function unchunk(text: string): string {
  const parts: string[] = [];
  for (let at = 0; ; ) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd < 0) return parts.join('');
    const length = Number.parseInt(text.slice(at, lineEnd), 16);
    parts.push(text.slice(lineEnd + 2, lineEnd + 2 + length));
    at = lineEnd + 2 + length + 2;
  }
}
