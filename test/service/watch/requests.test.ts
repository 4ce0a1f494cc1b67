// One exchange with an address of ALERTS_FILE, and the pauses between several.

import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { expect, test } from 'vitest';
import { createMetrics } from '../../../src/base/metrics.ts';
import { createHeartbeatCalls } from '../../../src/watch/messages/heartbeat-calls.ts';
import { limitLookups } from '../../../src/base/net/lookups.ts';
import { createSend } from '../../../src/watch/messages/requests.ts';
import { createSending } from '../../../src/watch/messages/sending.ts';
import type { DueMessage } from '../../../src/watch/messages/due.ts';
import { selfSignedCertificate } from '../../support/certificate.ts';
import { patience } from '../../support/patience.ts';
import { answer, hang, startReceiver } from '../../support/receiver.ts';
import { createTestLog } from '../../support/test-log.ts';
import { waitFor } from '../../support/waits.ts';

const content = { body: Buffer.from('{}'), headers: {} };
const never = new AbortController().signal;

test('an address that does not answer in time has failed; one that is cut by the stop has no result', async () => {
  await using receiver = await startReceiver(hang);

  expect(await createSend({ timeoutMs: 100, signal: never })(receiver.url, content)).toEqual({
    isTaken: false,
    error: 'no answer within 0.1 s',
  });
  await using other = await startReceiver(hang);
  const stop = new AbortController();
  const answered = createSend({ timeoutMs: patience(10_000), signal: stop.signal })(other.url, content);
  await other.untilReceived(1);
  stop.abort();
  expect(await answered).toBeUndefined();
});

test('the status counts, whatever comes after it: an answer without end is cut after some KiB', async () => {
  const closed = Promise.withResolvers<number>();
  await using receiver = await startReceiver((response) => {
    let bytes = 0;
    response.writeHead(200);
    response.on('close', () => closed.resolve(bytes));
    const more = () => {
      while (!response.destroyed && response.write(Buffer.alloc(64 * 1024))) bytes += 64 * 1024;
      response.once('drain', more);
    };
    more();
  });

  expect(await createSend({ signal: never })(receiver.url, content)).toEqual({ isTaken: true });
  expect(await closed.promise).toBeLessThan(64 * 1024 * 1024); // what the sockets had room for
});

test('over TLS a certificate of the CAs that Node trusts is taken, and no other', async () => {
  const certificate = selfSignedCertificate();
  await using receiver = await startReceiver(answer(200), { certificate });
  const send = createSend({ signal: never });
  expect(await send(receiver.url, content)).toEqual({
    isTaken: false,
    error: 'TLS failed (DEPTH_ZERO_SELF_SIGNED_CERT)',
  });
  expect(receiver.received).toEqual([]);

  const trusted = getCACertificates('default');
  setDefaultCACertificates([...trusted, certificate.cert]);
  try {
    expect(await send(receiver.url, content)).toEqual({ isTaken: true });
  } finally {
    setDefaultCACertificates(trusted);
  }
});

test.for([
  ['30', 30_000],
  ['86400', 3_600_000],
  ['soon', undefined],
  [new Date(Date.now() - 5_000).toUTCString(), 0],
] as const)(
  'an answer may ask for a pause of at most an hour: Retry-After %s',
  async ([value, retryAfterMs]) => {
    await using receiver = await startReceiver(
      (response) => void response.writeHead(429, { 'Retry-After': value }).end(),
    );

    expect(await createSend({ signal: never })(receiver.url)).toEqual({
      isTaken: false,
      error: 'answered with status 429',
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    });
  },
);

test('names are looked up three at a time: one of the threads is left for Postgres and RabbitMQ', () => {
  const running: string[] = [];
  const ends: (() => void)[] = [];
  const lookup = limitLookups((hostname, _options, callback) => {
    running.push(hostname);
    ends.push(() => callback(null, '127.0.0.1', 4));
  }, 3);
  const found: string[] = [];
  for (const name of ['a', 'b', 'c', 'd', 'e']) lookup(name, {}, () => found.push(name));
  expect(running).toEqual(['a', 'b', 'c']);
  ends[1]?.();
  expect([running, found]).toEqual([['a', 'b', 'c', 'd'], ['b']]);
  for (const end of [0, 2, 3, 4]) ends[end]?.();
  expect([running, found]).toEqual([
    ['a', 'b', 'c', 'd', 'e'],
    ['b', 'a', 'c', 'd', 'e'],
  ]);
});

test('a channel pauses as long as its receiver asks for, or twice as long after each failure, up to 15 minutes', async () => {
  const message: DueMessage = {
    id: 'a',
    incident: 'b',
    moment: 'begin',
    channel: 'room',
    attempts: 0,
    condition: 'parked',
    severity: 'critical',
    subject: '',
    summary: '',
    beganAt: new Date(),
    endedAt: null,
    eventsWaited: 0,
  };
  let skippedMs = 0;
  let looks = 0;
  const answers = [3_600_000, undefined, undefined, undefined] as const;
  const triedMs: number[] = [];
  const clock = () => performance.now() + skippedMs;
  const sending = createSending({
    alerts: {
      current: () => ({
        channels: [channel],
        heartbeatUrl: undefined,
        links: {},
      }),
    },
    due: {
      next: () => Promise.resolve([message]),
      claim: () => Promise.resolve(true),
      sent: () => Promise.resolve(),
      failed: () => Promise.resolve(),
      giveUp: () => Promise.resolve([]),
    },
    lease: {
      holder: 'h',
      epoch: () => '1',
      isLeading: () => {
        looks += 1;
        return true;
      },
    },
    send: () => {
      const retryAfterMs = answers[triedMs.length];
      triedMs.push(clock());
      return Promise.resolve({
        isTaken: false,
        error: '',
        ...(retryAfterMs !== undefined && { retryAfterMs }),
      });
    },
    metrics: createMetrics({ version: 'test', sources: () => [] }),
    now: clock,
    log: createTestLog().log,
    random: () => 0,
  });
  const channel = { form: 'slack', name: 'room', url: '', takes: () => true } as const;
  sending.start();
  const untilTried = (times: number) => waitFor(() => expect(triedMs).toHaveLength(times), { interval: 5 });
  await untilTried(1);
  skippedMs += 3_500_000;
  const before = looks;
  await waitFor(() => expect(looks).toBeGreaterThan(before + 1)); // it was looked, and not tried
  expect(triedMs).toHaveLength(1);
  skippedMs += 100_000;
  await untilTried(2);
  skippedMs += 3_900; // the second pause is of 4 s
  await untilTried(3);
  sending.end();
  await sending.settled();
  expect((triedMs[2] ?? 0) - (triedMs[1] ?? 0)).toBeGreaterThanOrEqual(4_000);
});

test('the heartbeat address is called while the lease is held and all is well, and not otherwise', async () => {
  await using receiver = await startReceiver(answer(200, 503, 200));
  const state = { isLeading: true, isWell: true, asked: 0 };
  const metrics = createMetrics({ version: 'test', sources: () => [] });
  const { log, lines } = createTestLog();
  const calls = createHeartbeatCalls({
    alerts: { current: () => ({ channels: [], heartbeatUrl: receiver.url, links: {} }) },
    lease: {
      isLeading: () => {
        state.asked += 1;
        return state.isLeading;
      },
    },
    isWell: () => state.isWell,
    send: createSend({ signal: never }),
    metrics,
    log,
    now: () => performance.now(),
    intervalMs: 20,
  });
  calls.start();
  const received = await receiver.untilReceived(4);
  expect(received.map(({ method }) => method)).toEqual(['GET', 'GET', 'GET', 'GET']);
  for (const change of [{ isWell: false }, { isWell: true, isLeading: false }]) {
    Object.assign(state, change);
    const before = state.asked;
    await waitFor(() => expect(state.asked).toBeGreaterThan(before + 2)); // what was under way is through
    const count = receiver.received.length;
    await waitFor(() => expect(state.asked).toBeGreaterThan(before + 10));
    expect(receiver.received).toHaveLength(count);
  }
  await calls.end();
  const text = await metrics.registry.metrics();
  expect(text).toContain(`tallyhook_heartbeat_calls_total{result="ok"} ${receiver.received.length - 1}\n`);
  expect(text).toContain('tallyhook_heartbeat_calls_total{result="failed"} 1\n');
  expect(lines.map(({ msg }) => msg)).toEqual([
    'the heartbeat address does not take our calls',
    'the heartbeat address takes our calls again',
  ]);
});
