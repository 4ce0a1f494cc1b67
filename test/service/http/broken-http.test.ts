// HTTP as nobody should send it, on bare sockets. Whatever comes, the answer is in our form or there is none, and
// the next sender is served.

// oxlint-disable vitest/no-standalone-expect -- `it` is vitest's test with a fixture, which the rule does not know

import request from 'supertest';
import { describe, expect, test } from 'vitest';
import { deliveries, events, lockWaits } from '../../support/ledger.ts';
import { newToken } from '../../support/operators.ts';
import { promisedMs } from '../../support/patience.ts';
import { openRaw, rawPost } from '../../support/raw-http.ts';
import { completed, deliver, newJobId, sign } from '../../support/sender.ts';
import { testWithService as it } from '../../support/fixtures.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { openSession } from '../../support/transaction.ts';

const signed = (body: string) => ({ 'X-Service-Signature': sign(body) });

/** The service is as it was: it takes the next delivery. */
async function expectServing(relay: TestService): Promise<void> {
  expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 202 });
}

const idOf = (body: string) => `default:${(JSON.parse(body) as { job_id: string }).job_id}:completed`;

const broken = JSON.stringify(completed('job_broken'));

describe('what is not HTTP', () => {
  it.for([
    ['a garbage request line', 'hello there\r\n\r\n'],
    ['bytes at random', Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03])],
    ['an unknown method', `FETCH /webhooks HTTP/1.1\r\nHost: x\r\n\r\n`],
    ['another version', `POST /webhooks HTTP/9.9\r\nHost: x\r\n\r\n`],
    ['two lengths that differ', rawPost(broken, { ...signed(broken), 'content-length': '5' })],
    ['a length and chunks', rawPost(broken, { ...signed(broken), 'Transfer-Encoding': 'chunked' })],
    ['a negative length', rawPost(broken, { ...signed(broken), 'Content-Length': '-1' })],
    ['a length that is no number', rawPost(broken, { ...signed(broken), 'Content-Length': '1e2' })],
    ['a length beyond all numbers', rawPost(broken, { ...signed(broken), 'Content-Length': '9'.repeat(40) })],
    [
      'chunked, but not last',
      rawPost(broken, { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked, gzip' }),
    ],
    ['a NUL in a header', rawPost(broken, { ...signed(broken), 'X-Odd': 'a\0b' })],
    ['a header without a colon', `POST /webhooks HTTP/1.1\r\nHost: x\r\nrubbish\r\n\r\n`],
    ['a space before the colon', `POST /webhooks HTTP/1.1\r\nHost: x\r\nContent-Length : 2\r\n\r\n{}`],
    ['no Host', `POST /webhooks HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}`],
    ['two Hosts', rawPost(broken, { ...signed(broken), host: 'other.test' })],
    ['the same Host twice', rawPost(broken, { ...signed(broken), HOST: 'relay.test' })],
    ['two Hosts in HTTP/1.0', rawPost(broken, { ...signed(broken), host: 'x' }, 'POST /webhooks HTTP/1.0')],
  ] as const)('%s is 400 in our error format, and the connection is closed', async ([, bytes], { relay }) => {
    using connection = await openRaw(relay.service.port);
    connection.write(bytes);

    expect(await connection.replies()).toEqual([
      {
        status: 400,
        headers: expect.objectContaining({
          connection: 'close',
          'content-type': 'application/json; charset=utf-8',
          'x-content-type-options': 'nosniff',
        }),
        body: { error: 'bad_request', message: expect.any(String) },
      },
    ]);
    await connection.closed;
    expect((await events(relay.database)).filter(({ job_id }) => job_id === 'job_broken')).toEqual([]);
    await expectServing(relay);
  });

  it('two Hosts are refused on the operators’ port, too', async ({ relay }) => {
    using connection = await openRaw(relay.service.operatorPort);
    connection.write('GET /livez HTTP/1.1\r\nHost: one\r\nHost: two\r\n\r\n');

    expect(await connection.replies()).toMatchObject([
      {
        status: 400,
        headers: { connection: 'close', 'x-content-type-options': 'nosniff' },
        body: { error: 'bad_request' },
      },
    ]);
  });

  it('headers beyond 16 KiB are 431', async ({ relay }) => {
    using connection = await openRaw(relay.service.port);
    connection.write(rawPost('{}', { 'X-Large': 'x'.repeat(20_000) }));

    expect(await connection.replies()).toMatchObject([
      { status: 431, headers: { connection: 'close' }, body: { error: 'headers_too_large' } },
    ]);
    await connection.closed;
    await expectServing(relay);
  });

  test('a chunk size that is no number is 400, and leaves a trace', async () => {
    await using relay = await startTestService();

    using connection = await openRaw(relay.service.port);
    connection.write(
      rawPost('zz\r\nabc\r\n', { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }),
    );

    expect(await connection.replies()).toMatchObject([{ status: 400, body: { error: 'bad_request' } }]);
    await connection.closed;
    await expect
      .poll(() => deliveries(relay.database))
      .toMatchObject([{ outcome: 'refused', http_status: 400 }]);
    await expectServing(relay);
  });

  it('an expectation that nobody knows is an error in our form', async ({ relay }) => {
    using connection = await openRaw(relay.service.port);
    connection.write(rawPost('{}', { Expect: 'miracles' }));

    expect(await connection.replies()).toMatchObject([
      { status: 417, body: { error: expect.any(String), message: expect.any(String) } },
    ]);
    await expectServing(relay);
  });

  it('Expect: 100-continue is answered, and then the delivery', async ({ relay }) => {
    const body = JSON.stringify(completed(newJobId()));

    using connection = await openRaw(relay.service.port);
    connection.write(rawPost(body, { ...signed(body), Expect: '100-continue' }));

    expect(await connection.replies()).toMatchObject([{ status: 202 }]);
    expect(connection.text()).toMatch(/^HTTP\/1\.1 100 Continue\r\n/);
  });
});

describe('bodies that do not come as announced', () => {
  test('a body shorter than its length is refused when the sender ends, and leaves a trace', async () => {
    await using relay = await startTestService();
    const body = JSON.stringify(completed('job_short'));

    using connection = await openRaw(relay.service.port);
    connection.write(rawPost(body, { ...signed(body), 'Content-Length': String(body.length + 1) }));
    connection.end();

    expect(await connection.replies()).toMatchObject([
      { status: 400, body: { error: 'bad_request', message: 'the request ended before it was whole' } },
    ]);
    await connection.closed;
    await expect
      .poll(() => deliveries(relay.database))
      .toMatchObject([{ outcome: 'refused', http_status: 400, reason: 'bad_request', body: null }]);
    expect(await events(relay.database)).toEqual([]);
    await expectServing(relay);
  });

  it('a body longer than its length is cut there: the signature does not match, and the rest is no request', async ({
    relay,
  }) => {
    const body = JSON.stringify(completed('job_long'));

    using connection = await openRaw(relay.service.port);
    connection.write(
      rawPost(`${body}garbage`, { ...signed(`${body}garbage`), 'Content-Length': String(body.length) }),
    );

    expect(await connection.replies()).toMatchObject([{ status: 401 }]);
    await connection.closed;
    await expectServing(relay);
  });

  test('a request that is hung up half way leaves a trace and no event', async () => {
    await using relay = await startTestService();
    const body = JSON.stringify(completed('job_aborted'));

    {
      using connection = await openRaw(relay.service.port);
      connection.write(rawPost(body, { ...signed(body), 'Content-Length': '9000' }));
      // The head has arrived when the log of another request, sent after it, is there.
      await deliver(relay.webhooks, '[]');
      connection.reset();
    }

    await expect
      .poll(async () => (await deliveries(relay.database)).filter(({ outcome }) => outcome === 'refused'))
      .toMatchObject([{ http_status: 400, reason: 'bad_request', source: 'default', body: null }]);
    expect(await events(relay.database)).toEqual([]);
    await expectServing(relay);
  });

  test('a body that arrives too slowly is 408 at the deadline', async () => {
    await using relay = await startTestService({ env: { ANSWER_DEADLINE_MS: '600' } });
    const body = JSON.stringify(completed('job_slow'));

    using connection = await openRaw(relay.service.port);
    const startedMs = performance.now();
    connection.write(rawPost('', { ...signed(body), 'Content-Length': String(body.length) }));
    const trickle = setInterval(() => connection.write('x'), 50);
    const [reply] = await connection.replies();
    clearInterval(trickle);

    expect(reply).toMatchObject({
      status: 408,
      headers: { connection: 'close' },
      body: { error: 'request_timeout', message: expect.any(String) },
    });
    expect(performance.now() - startedMs).toBeLessThan(promisedMs(3_000));
    await connection.closed;
    await expect
      .poll(() => deliveries(relay.database))
      .toMatchObject([{ outcome: 'refused', http_status: 408 }]);
    await expectServing(relay);
  });

  it('headers that never end are 408', async ({ relay }) => {
    using connection = await openRaw(relay.service.port);
    connection.write('POST /webhooks HTTP/1.1\r\nHost: x\r\n');

    expect(await connection.replies()).toMatchObject([{ status: 408, body: { error: 'request_timeout' } }]);
    await connection.closed;
  });

  test('chunks without end are cut at the limit', async () => {
    await using relay = await startTestService({ env: { BODY_LIMIT_BYTES: '10000' } });
    const chunk = `400\r\n${'x'.repeat(1_024)}\r\n`;

    using connection = await openRaw(relay.service.port);
    connection.write(rawPost('', { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }));
    const endless = setInterval(() => connection.write(chunk), 1);
    const [reply] = await connection.replies();
    await connection.closed;
    clearInterval(endless);

    expect(reply).toMatchObject({
      status: 413,
      headers: { connection: 'close' },
      body: { error: 'payload_too_large' },
    });
    await expectServing(relay);
  });

  it('chunks with endless extensions are not read for ever', async ({ relay }) => {
    using connection = await openRaw(relay.service.port);
    connection.write(
      rawPost(`1;${'x'.repeat(100_000)}`, { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }),
    );

    expect(await connection.replies()).toMatchObject([{ body: { error: expect.any(String) } }]);
    await connection.closed;
    await expectServing(relay);
  });
});

describe('connections', () => {
  test('one that the client never closes after an error is closed by us', async () => {
    await using relay = await startTestService({ env: { MAX_CONNECTIONS: '2' } });
    using one = await openRaw(relay.service.port);
    using two = await openRaw(relay.service.port);
    for (const connection of [one, two]) {
      connection.write('garbage\r\n\r\n');
      await connection.closed; // their side; ours stays open
    }

    await expect
      .poll(() => deliver(relay.webhooks, completed(newJobId())).then(({ status }) => status, String), {
        interval: 100,
      })
      .toBe(202);
  });

  it('pipelined requests are answered each, in order', async ({ relay }) => {
    const bodies = Array.from({ length: 10 }, () => JSON.stringify(completed(newJobId())));
    const requests = bodies.map((body, index) => rawPost(body, index % 3 === 2 ? {} : signed(body)));

    using connection = await openRaw(relay.service.port);
    connection.write(requests.join(''));

    const replies = await connection.replies(10);
    expect(replies.map(({ status }) => status)).toEqual(
      bodies.map((_, index) => (index % 3 === 2 ? 401 : 202)),
    );
    expect(replies.flatMap(({ body }) => body['event_id'] ?? [])).toEqual(
      bodies
        .filter((_, index) => index % 3 !== 2)
        .map((body) => `default:${(JSON.parse(body) as { job_id: string }).job_id}:completed`),
    );
  });

  it('of more than 16 that are pipelined the first 16 are answered, and the others can be sent again', async ({
    relay,
  }) => {
    const bodies = Array.from({ length: 40 }, () => JSON.stringify(completed(newJobId())));
    using connection = await openRaw(relay.service.port);
    connection.write(bodies.map((body) => rawPost(body, signed(body))).join(''));
    await connection.closed;

    const replies = await connection.replies(16);
    expect(replies.map(({ body }) => body['event_id'])).toEqual(bodies.slice(0, 16).map(idOf));
    expect(replies.map(({ headers }) => headers['connection'] === 'close')).toEqual(
      bodies.slice(0, 16).map((_, index) => index === 15),
    );
    expect(connection.text().match(/HTTP\/1\.1 /g)).toHaveLength(16);
    for (const body of bodies.slice(16)) {
      expect(await deliver(relay.webhooks, body)).toMatchObject({
        status: 202,
        body: { event_id: idOf(body) },
      });
    }
  });

  it.for(['GET /livez', 'GET /nowhere', 'POST /webhooks'])(
    'so it is on the operators’ port, and with %s',
    async (asked, { relay }) => {
      using connection = await openRaw(relay.service.operatorPort);
      connection.write(`${asked} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(2_000));
      await connection.closed;

      expect(await connection.replies(16)).toHaveLength(16);
    },
  );

  it('a stranger’s is ended when it is idle, one that brought a verified delivery or a valid token is not', async ({
    relay,
  }) => {
    const body = JSON.stringify(completed(newJobId()));
    const { value } = await newToken(relay.database);
    const token = `Authorization: Bearer ${value}\r\n`;
    using stranger = await openRaw(relay.service.port);
    using sender = await openRaw(relay.service.port);
    using visitor = await openRaw(relay.service.operatorPort);
    using operator = await openRaw(relay.service.operatorPort);
    sender.write(rawPost(body, signed(body)));
    operator.write(list(token));
    expect(await sender.replies()).toMatchObject([{ status: 202 }]);
    expect(await operator.replies()).toMatchObject([{ status: 200 }]);
    stranger.write(rawPost(body));
    visitor.write(list(''));
    expect(await stranger.replies()).toMatchObject([{ status: 401, headers: { connection: 'keep-alive' } }]);
    expect(await visitor.replies()).toMatchObject([{ status: 401, headers: { connection: 'keep-alive' } }]);

    await Promise.all([stranger.closed, visitor.closed]);

    // Those were idle for longer.
    sender.write(rawPost(body, signed(body)));
    operator.write(list(token));
    expect((await sender.replies(2)).at(-1)).toMatchObject({ status: 200 });
    expect((await operator.replies(2)).at(-1)).toMatchObject({ status: 200 });
  });

  test('if all are taken, with a complete request on each, the service is unready and says why', async () => {
    await using relay = await startTestService({ env: { MAX_CONNECTIONS: '1' } });
    const readiness = async () => {
      const { body } = await request(relay.operators).get('/readyz');
      return body as unknown;
    };
    await expect.poll(readiness).toMatchObject({ ready: true, connections: 'room' });
    await holdEventsAtGate(relay);
    await using session = await openGate(relay);
    const body = JSON.stringify(completed(newJobId()));

    {
      using connection = await openRaw(relay.service.port);
      connection.write(rawPost(body, signed(body)));
      await expect.poll(readiness).toMatchObject({ ready: false, connections: 'full' });
      using turnedAway = await openRaw(relay.service.port);
      await turnedAway.closed;
      expect(turnedAway.text()).toBe('');
      await session.open();
      expect(await connection.replies()).toMatchObject([{ status: 202 }]);
    }

    await expect.poll(readiness).toMatchObject({ ready: true, connections: 'room' });
    await expectServing(relay);
  });

  it('rubbish behind a good request does not spoil its answer', async ({ relay }) => {
    const body = JSON.stringify(completed(newJobId()));

    using connection = await openRaw(relay.service.port);
    connection.write(`${rawPost(body, signed(body))}RUBBISH\r\n\r\n`);

    expect(await connection.replies()).toMatchObject([
      { status: 202, headers: { connection: 'close' }, body: { outcome: 'accepted' } },
    ]);
    await connection.closed;
    expect(await connection.replies()).toHaveLength(1);
    await expectServing(relay);
  });

  const CONNECT = 'CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\r\n';
  const NO_CHUNK = rawPost('zz\r\n', { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' });

  it.for([
    ['CONNECT', CONNECT],
    ['a broken chunk', NO_CHUNK],
    ['rubbish', 'RUBBISH\r\n\r\n'],
  ] as const)(
    '%s costs no answer that is under way: they come, and then the end',
    async ([, bytes], { relay }) => {
      const bodies = Array.from({ length: 3 }, () => JSON.stringify(completed(newJobId())));
      await using gate = await closeGate(relay);

      using connection = await openRaw(relay.service.port);
      connection.write(`${bodies.map((body) => rawPost(body, signed(body))).join('')}${bytes}`);
      await expect.poll(() => lockWaits(relay.database)).toEqual([{ kind: 'advisory' }]);
      await gate.open();

      const replies = await connection.replies(3);
      await connection.closed;
      expect(replies.map(({ status, body }) => [status, body['event_id']])).toEqual(
        bodies.map((body) => [202, idOf(body)]),
      );
      expect(replies.map(({ headers }) => headers['connection'])).toEqual([
        'keep-alive',
        'keep-alive',
        'close',
      ]);
      expect(connection.text().match(/HTTP\/1\.1 /g)).toHaveLength(3);
      await expectServing(relay);
    },
  );

  it('CONNECT is 405 in our error format on both ports, and the connection is closed', async ({ relay }) => {
    for (const port of [relay.service.port, relay.service.operatorPort]) {
      using connection = await openRaw(port);
      connection.write(CONNECT);

      expect(await connection.replies()).toMatchObject([
        {
          status: 405,
          headers: { allow: '', connection: 'close', 'x-content-type-options': 'nosniff' },
          body: { error: 'method_not_allowed', message: expect.any(String) },
        },
      ]);
      await connection.closed;
    }
  });

  test('while it drains, all that is under way on a connection is answered, and no more is taken', async () => {
    await using relay = await startTestService();
    const bodies = Array.from({ length: 4 }, () => JSON.stringify(completed(newJobId())));
    const requests = bodies.map((body) => rawPost(body, signed(body)));
    await using gate = await closeGate(relay);

    using connection = await openRaw(relay.service.port);
    connection.write(requests.slice(0, 3).join(''));
    await expect.poll(() => lockWaits(relay.database)).toEqual([{ kind: 'advisory' }]);
    const stopped = relay.service.stop();
    connection.write(requests[3] ?? '');
    await gate.open();

    await connection.closed;
    const replies = await connection.replies(3);
    expect(replies.map(({ status, body }) => [status, body['event_id']])).toEqual(
      bodies.slice(0, 3).map((body) => [202, idOf(body)]),
    );
    expect(replies.map(({ headers }) => headers['connection'])).toEqual([
      'keep-alive',
      'keep-alive',
      'close',
    ]);
    await stopped;
    expect(await events(relay.database)).toHaveLength(3); // the fourth can be sent again
  });

  it('a connection stays open for the next delivery', async ({ relay }) => {
    using connection = await openRaw(relay.service.port);
    for (const count of [1, 2, 3]) {
      const body = JSON.stringify(completed(newJobId()));
      connection.write(rawPost(body, signed(body)));
      const replies = await connection.replies(count);
      expect(replies.at(-1)).toMatchObject({ status: 202, headers: { connection: 'keep-alive' } });
    }
  });

  test('a sender that hangs up after its body does not undo its write', async () => {
    await using relay = await startTestService();
    const jobIds = Array.from({ length: 20 }, newJobId);

    for (const jobId of jobIds) {
      using connection = await openRaw(relay.service.port);
      const body = JSON.stringify(completed(jobId));
      connection.write(rawPost(body, signed(body)));
      connection.end();
    }
    await expect.poll(() => events(relay.database)).toHaveLength(20);

    expect(await deliver(relay.webhooks, completed(jobIds[0] ?? ''))).toMatchObject({
      status: 200,
      body: { outcome: 'duplicate' },
    });
  });

  test('a sender that hangs up while its write waits for a lock does not undo it', async () => {
    await using relay = await startTestService();
    const body = JSON.stringify(completed(newJobId()));
    await holdEventsAtGate(relay);
    await using session = await openGate(relay);

    using connection = await openRaw(relay.service.port);
    connection.write(rawPost(body, signed(body)));
    await expect.poll(() => lockWaits(relay.database)).toEqual([{ kind: 'advisory' }]);
    connection.reset();
    await session.open();

    await expect.poll(() => events(relay.database)).toHaveLength(1);
    await expectServing(relay);
  });
});

function list(headers: string): string {
  return `GET /api/v1/jobs?limit=1 HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;
}

/** Both of the below: no event is recorded until it is opened. */
async function closeGate(relay: TestService): ReturnType<typeof openGate> {
  await holdEventsAtGate(relay);
  return openGate(relay);
}

/** Each event waits for the lock of `openGate` before it is recorded. */
async function holdEventsAtGate({ database }: TestService): Promise<void> {
  await database.query(`
    create or replace function wait_at_gate() returns trigger language plpgsql as $$
    begin perform pg_advisory_xact_lock_shared(7); return new; end $$`);
  await database.query(
    'create or replace trigger wait_at_gate before insert on events for each row execute function wait_at_gate()',
  );
}

/** Holds the lock that the trigger above waits for. */
async function openGate(relay: TestService): Promise<AsyncDisposable & { open: () => Promise<void> }> {
  const session = await openSession(relay.database);
  await session.query('select pg_advisory_lock(7)');
  return {
    open: async () => void (await session.query('select pg_advisory_unlock(7)')),
    [Symbol.asyncDispose]: session[Symbol.asyncDispose],
  };
}
