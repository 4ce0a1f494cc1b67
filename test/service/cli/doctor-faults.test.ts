// `tallyhook doctor` on endpoints with a fault, each on a real socket: what it finds, and that it says what to do.

import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findFreePort } from '../../../scripts/services/ports.ts';
import { examine, timeoutsFor } from '../../../src/tools/doctor/checks.ts';
import type { Finding } from '../../../src/tools/doctor/finding.ts';
import { promisedMs } from '../../support/patience.ts';
import { selfSignedCertificate } from '../../support/certificate.ts';
import { startFront } from '../../support/front.ts';
import { startOrigin } from '../../support/origin.ts';
import { answer, hang, startReceiver } from '../../support/receiver.ts';
import { SECRET } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { openTransaction } from '../../support/transaction.ts';

let relay: TestService;
beforeAll(async () => {
  relay = await startTestService();
});
afterAll(() => relay[Symbol.asyncDispose]());

const secrets = [{ name: 'a file', secret: SECRET, raw: SECRET }];

/** By the names of the checks. `timeoutMs`: long, since the machine may be busy. */
async function examined(
  url: string,
  {
    timeoutMs = 5_000,
    wholeMs = 30_000,
    event,
  }: { timeoutMs?: number; wholeMs?: number; event?: boolean } = {},
): Promise<Partial<Record<Finding['check'], Finding>>> {
  const endpoint = { url: new URL(url), timeoutMs, signal: AbortSignal.timeout(wholeMs) };
  const plan = {
    endpoint,
    secrets,
    event: event ? { job: 'doctor-1', mayMake: async () => true } : undefined,
  };
  const found: Partial<Record<Finding['check'], Finding>> = {};
  for await (const finding of examine(plan)) found[finding.check] = finding;
  return found;
}

const failedWith = (found: string, mend = '') => ({
  result: 'failed',
  found: expect.stringContaining(found),
  mend: expect.stringContaining(mend),
});
const warningWith = (found: string, mend = '') => ({ ...failedWith(found, mend), result: 'warning' });
const skipped = { result: 'skipped' };

describe('an address', () => {
  test('at which nothing listens ends the checks', async () => {
    const port = await findFreePort();

    expect(await examined(`http://127.0.0.1:${port}/webhooks`)).toMatchObject({
      address: failedWith(`127.0.0.1: nothing listens at port ${port}`, 'npm start'),
      tls: skipped,
      signature: skipped,
      time: skipped,
    });
  });

  test('whose name nobody knows ends them, too', async () => {
    expect(await examined('https://no-such-host.invalid/webhooks')).toMatchObject({
      address: failedWith('the name no-such-host.invalid has no address', 'DNS'),
      tls: skipped,
    });
  });

  test('that speaks no TLS, or no HTTP, is said to do so', async () => {
    expect(await examined(relay.webhooks.replace('http:', 'https:'))).toMatchObject({
      tls: failedWith('does not speak TLS', 'http://'),
      signature: skipped,
    });
    await using broken = await startOrigin((_request, { socket }) => void socket?.end('SSH-2.0-x\r\n'));
    expect(await examined(broken.url)).toMatchObject({ signature: failedWith('does not speak HTTP') });
  });

  test('of http whose port speaks TLS is said to need https', async () => {
    await using secure = await startFront(relay.intake, { certificate: selfSignedCertificate({}) });

    expect(await examined(secure.url.replace('https:', 'http:'))).toMatchObject({
      signature: failedWith('no answer to a signed body', 'https:// in place of http://'),
      forged: skipped,
    });
    expect(secure.received).toEqual([]);
  });

  test('with another path has nothing of Tallyhook', async () => {
    for (const path of ['/webhook', '/webhooks/', '/WEBHOOKS']) {
      expect(await examined(relay.intake + path)).toMatchObject({
        signature: failedWith('Tallyhook has nothing at this path', '/webhooks/<source>'),
        forged: skipped,
        time: skipped,
      });
    }
  });
});

test('a redirect is a fault, and is not followed', async () => {
  await using secure = await startReceiver();
  await using front = await startOrigin((_request, response) => {
    response.writeHead(301, { Location: secure.url }).end();
  });

  expect(await examined(front.url)).toMatchObject({
    signature: failedWith(
      `a redirect to ${secure.url}. Senders follow no redirect`,
      'give senders the address',
    ),
    forged: skipped,
  });
  expect(secure.received).toEqual([]);
});

test('an endpoint that takes everything has the worst fault', async () => {
  await using open = await startReceiver(answer(200));

  expect(await examined(open.url)).toMatchObject({
    signature: failedWith('answered with 200'),
    forged: failedWith('THE WORST FAULT: accepted', 'can report jobs as completed'),
    unsigned: failedWith('THE WORST FAULT: accepted'),
    bytes: skipped,
    time: skipped,
  });
  const received = open.received.map(
    ({ rawHeaders, body }) => `${rawHeaders.join('\n')}\n${body.toString()}`,
  );
  expect(received.join('\n')).not.toContain(SECRET);
});

test('one that looks only at the form of the signature has it, too', async () => {
  await using careless = await startReceiver((response, { headers }) => {
    const isSigned = headers['x-service-signature'] !== undefined;
    const [status, error] = isSigned ? ([400, 'malformed'] as const) : ([401, 'unauthorized'] as const);
    response.writeHead(status).end(JSON.stringify({ error, message: 'x' }));
  });

  expect(await examined(careless.url)).toMatchObject({
    signature: { result: 'ok' },
    forged: failedWith('THE WORST FAULT: accepted. a body signed with another secret'),
    unsigned: { result: 'ok' },
  });
});

test('one that takes a body which was changed after signing has it', async () => {
  let signed = 0;
  await using careless = await startFront(relay.intake, {
    change: ({ headers, body }) => {
      if (headers['x-service-signature'] !== undefined) signed += 1;
      // The first one is right, the second of another secret.
      return signed === 3 ? { status: 200, text: 'ok' } : { headers, body };
    },
  });

  expect((await examined(careless.url)).forged).toMatchObject(
    failedWith('THE WORST FAULT: accepted. a body changed after signing'),
  );
});

describe('a proxy', () => {
  test('that removes the signature makes a 401 whose causes are named', async () => {
    await using front = await startFront(relay.intake, {
      change: ({ headers: { 'x-service-signature': _removed, ...headers }, body }) => ({ headers, body }),
    });

    expect(await examined(front.url)).toMatchObject({
      signature: failedWith('refused with 401', 'removes X-Service-Signature'),
      bytes: skipped,
    });
  });

  test('that writes JSON anew is found by a body with odd white space', async () => {
    await using front = await startFront(relay.intake, {
      change: ({ headers, body }) => ({ headers, body: rewritten(body) }),
    });

    expect(await examined(front.url)).toMatchObject({
      signature: { result: 'ok' },
      bytes: failedWith('changed on its way', 'byte for byte'),
    });
  });

  test('that changes line ends is found by it, too', async () => {
    await using front = await startFront(relay.intake, {
      change: ({ headers, body }) => ({
        headers,
        body: Buffer.from(body.toString('latin1').replaceAll('\r\n', '\n'), 'latin1'),
      }),
    });

    expect(await examined(front.url)).toMatchObject({
      signature: { result: 'ok' },
      bytes: failedWith('changed on its way'),
    });
  });

  test('that takes less than the service, answers GET itself, or unpacks bodies, is told apart from it', async () => {
    await using front = await startFront(relay.intake, {
      change: ({ headers, body }) => {
        if (headers['content-length'] === undefined) return { status: 403, text: 'no' };
        const { 'content-encoding': encoding, ...rest } = headers;
        if (encoding !== undefined) return { headers: rest, body: Buffer.from('{}') };
        return body.length > 100_000 ? { status: 413, text: 'no' } : { headers, body };
      },
    });

    expect(await examined(front.url)).toMatchObject({
      bytes: { result: 'ok' },
      method: warningWith('GET was answered with 403', 'firewall'),
      encoding: warningWith('changed on its way', 'unpacks bodies'),
      size: failedWith(
        'a body of 262,144 bytes, which is within the limit, was answered with 413',
        'client_max_body_size',
      ),
      time: { result: 'ok' },
    });
  });

  test('that answers GET with a page, and takes compressed bodies, fails', async () => {
    await using front = await startFront(relay.intake, {
      change: ({ headers, body }) => {
        const isOwn = headers['content-length'] === undefined || headers['content-encoding'] !== undefined;
        return isOwn ? { status: 200, text: 'hello' } : { headers, body };
      },
    });

    expect(await examined(front.url)).toMatchObject({
      method: failedWith('GET was answered with 200: "hello"'),
      encoding: failedWith('a compressed body was answered with 200'),
    });
  });

  test('that waits for whole bodies passes those within the limit', async () => {
    await using front = await startFront(relay.intake);

    expect(await examined(front.url)).toMatchObject({
      size: { result: 'ok', details: { limit_bytes: 262_144 } },
    });
  });

  test('behind which nothing runs is said to be in front', async () => {
    await using front = await startFront(relay.intake, {
      change: () => ({ status: 502, text: '<h1>nginx</h1>' }),
    });

    expect(await examined(front.url)).toMatchObject({
      signature: failedWith(
        '502: "<h1>nginx</h1>", which Tallyhook does not answer',
        'check that the service runs',
      ),
      forged: skipped,
    });
  });
});

test('a limit other than the default is found', async () => {
  const { database } = relay;
  await using small = await startTestService({ database, env: { BODY_LIMIT_BYTES: '2000' } });
  await using large = await startTestService({ database, env: { BODY_LIMIT_BYTES: '300000' } });

  expect((await examined(small.webhooks)).size).toMatchObject({
    result: 'ok',
    details: { limit_bytes: 2_000 },
  });
  expect((await examined(large.webhooks)).size).toMatchObject({
    result: 'ok',
    found: expect.stringContaining('BODY_LIMIT_BYTES is above its default'),
  });
});

test('a service whose Postgres does not answer is said to be so', async () => {
  const { database } = relay;
  await using hasty = await startTestService({ database, env: { ANSWER_DEADLINE_MS: '500' } });
  await using lock = await openTransaction(database);
  await lock.query('lock table deliveries in access exclusive mode');

  expect(await examined(hasty.webhooks)).toMatchObject({
    signature: failedWith('503: Tallyhook cannot record deliveries now', 'Postgres'),
    forged: skipped,
  });
});

describe('an endpoint', () => {
  test('that is slow is a warning', async () => {
    const timeoutMs = 2_000;
    await using slow = await startFront(relay.intake, {
      change: async (passed) => {
        if (isSmall(passed)) await delay(timeoutMs / 10 + 1);
        return passed;
      },
    });

    expect(await examined(slow.url, { timeoutMs })).toMatchObject({
      signature: { result: 'ok' },
      time: warningWith('Senders wait 2.0 s', 'tallyhook stats'),
    });
  });

  test('that answers each request within the time-out passes, however long all take, with a warning', async () => {
    const timeoutMs = promisedMs(1_500);
    await using slow = await startFront(relay.intake, {
      change: async (passed) => {
        await delay(timeoutMs * 0.6);
        return passed;
      },
    });

    const found = await examined(slow.url, {
      timeoutMs,
      wholeMs: timeoutsFor(secrets) * timeoutMs,
    });
    const { time, ...others } = found;
    expect(Object.values(others).filter(({ result }) => result !== 'ok')).toEqual([]);
    // Two of them show it.
    expect(time).toMatchObject(warningWith('slow: the median of 2 answers took', 'Look at'));
  });

  test('that stops to answer is not looked for at another address', async () => {
    let requests = 0;
    await using stopping = await startFront(relay.intake, {
      change: async (passed) => {
        requests += 1;
        if (requests > 10) await delay(2_000);
        return passed;
      },
    });

    const { time } = await examined(stopping.url, { timeoutMs: 1_000 });
    expect(time).toMatchObject(
      failedWith(
        'no answer to request 2 of 5: there was no answer within 1 s. Before it, answers took',
        'slow',
      ),
    );
    expect(time?.mend).not.toContain('firewall');
  });

  test('whose event has the id of another job fails', async () => {
    await using mistaken = await startFront(relay.intake, {
      change: (passed) =>
        passed.body.includes('doctor-1')
          ? { status: 202, text: '{"outcome":"accepted","event_id":"default:job_2:failed"}' }
          : passed,
    });

    expect(await examined(mistaken.url, { event: true })).toMatchObject({
      event: failedWith('the event_id default:job_2:failed, which is of another job', 'another service'),
      redelivery: skipped,
    });
  });

  test('that never answers ends the checks after one time-out', async () => {
    await using silent = await startReceiver(hang);

    expect(await examined(silent.url, { timeoutMs: 500 })).toMatchObject({
      signature: failedWith('there was no answer within 0.5 s'),
      forged: skipped,
      time: skipped,
    });
    expect(silent.received).toHaveLength(1);
  });

  test('whose checks take too long in all is left, and the rest is named as not checked', async () => {
    expect(await examined(relay.webhooks, { wholeMs: 0 })).toMatchObject({
      address: { result: 'ok' },
      signature: failedWith('the time for all checks together was over'),
      time: { result: 'skipped', found: 'the time for all checks together was over' },
    });
  });

  test('that takes an event for another one each time fails', async () => {
    let events = 0;
    await using forgetful = await startFront(relay.intake, {
      change: (passed) => {
        if (!passed.body.includes('doctor-1')) return passed;
        events += 1;
        const id = events === 1 ? 'default:doctor-1:failed' : 'e2';
        return { status: 202, text: JSON.stringify({ outcome: 'accepted', event_id: id }) };
      },
    });

    expect(await examined(forgetful.url, { event: true })).toMatchObject({
      event: { result: 'ok' },
      redelivery: failedWith(
        'was answered with 202, the outcome "accepted" and the event_id e2',
        'operators',
      ),
    });
  });
});

/** As those that are timed; the rest of the checks need not wait. */
const isSmall = ({ body }: { body: Buffer }) => body.length > 0 && body.length < 60;

/** As a proxy that parses JSON and writes it again. */
function rewritten(body: Buffer): Buffer {
  try {
    return Buffer.from(JSON.stringify(JSON.parse(body.toString())));
  } catch {
    return body;
  }
}
