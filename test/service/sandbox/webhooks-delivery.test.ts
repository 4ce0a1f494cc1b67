import { createServer } from 'node:net';
import type { AddressInfo, LookupFunction } from 'node:net';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createAddresses } from '../../../src/sandbox/addresses/addresses.ts';
import { selfSignedCertificate } from '../../support/certificate.ts';
import { newNotification, startDeliverer } from '../../support/notifications.ts';
import { answer, hang, startReceiver } from '../../support/receiver.ts';
import { SECRET, sign } from '../../support/sender.ts';
import { patience } from '../../support/patience.ts';

const ONE_ATTEMPT = { maxAttempts: 1, firstDelayMs: 1, factor: 1, maxDelayMs: 1, jitter: 0 } as const;

test('a notification arrives once, byte for byte, as signed JSON, and nothing of its answer matters but the status', async () => {
  await using receiver = await startReceiver((response) => void response.writeHead(201).end('not JSON'));
  await using sandbox = startDeliverer();
  const body = Buffer.from('{"job_id":"job_ü","status":"completed"}\n');

  const notification = sandbox.tell(newNotification({ url: `${receiver.url}/team-a?key=1`, body }));
  const { attempts } = await sandbox.until(notification, 'delivered');

  const [request] = receiver.received;
  expect(receiver.received).toHaveLength(1);
  expect(request).toMatchObject({ method: 'POST', path: '/webhooks/team-a?key=1' });
  expect(request?.body.equals(body)).toBe(true);
  expect(request?.headers['content-type']).toBe('application/json');
  expect(request?.headers['user-agent']).toMatch(/^tallyhook-sandbox\/\d/);
  const at = request?.rawHeaders.indexOf('X-Service-Signature') ?? -1;
  expect(request?.rawHeaders[at + 1]).toBe(sign(body, SECRET));
  expect(attempts).toMatchObject([
    { notificationId: notification.id, attempt: 1, httpStatus: 201, error: null },
  ]);
});

test('each account signs with its own secret', async () => {
  await using receiver = await startReceiver();
  await using sandbox = startDeliverer({ secretOf: (accountId) => `the-secret-of-${accountId}` });
  const told = ['account_a', 'account_b'].map((accountId) =>
    sandbox.tell(newNotification({ url: receiver.url, accountId })),
  );
  await receiver.untilReceived(2);

  const signatures = receiver.received.map(({ headers }) => headers['x-service-signature']);
  const expected = told.map(({ body, accountId }) => sign(body, `the-secret-of-${accountId}`));
  expect(new Set(signatures)).toEqual(new Set(expected));
});

test.each([200, 202, 204, 299])('status %i acknowledges', async (status) => {
  await using receiver = await startReceiver(answer(status));
  await using sandbox = startDeliverer({ retry: ONE_ATTEMPT });

  const { attempts } = await sandbox.until(sandbox.tell(newNotification({ url: receiver.url })), 'delivered');

  expect(attempts).toMatchObject([{ httpStatus: status, error: null }]);
});

test.each([300, 304, 400, 401, 404, 410, 429, 500, 503])('status %i does not acknowledge', async (status) => {
  await using receiver = await startReceiver(answer(status));
  await using sandbox = startDeliverer({ retry: ONE_ATTEMPT });

  const { attempts } = await sandbox.until(sandbox.tell(newNotification({ url: receiver.url })), 'given_up');

  expect(attempts).toMatchObject([{ httpStatus: status, error: null }]);
});

test('a redirect is not followed', async () => {
  await using target = await startReceiver();
  await using receiver = await startReceiver(
    (response) => void response.writeHead(307, { Location: target.url }).end(),
  );
  await using sandbox = startDeliverer({ retry: ONE_ATTEMPT });

  const { attempts } = await sandbox.until(sandbox.tell(newNotification({ url: receiver.url })), 'given_up');

  expect(attempts).toMatchObject([{ httpStatus: 307 }]);
  expect(target.received).toEqual([]);
});

test('an answer that breaks off after its head acknowledges: the receiver has said what it wanted', async () => {
  await using receiver = await startReceiver((response) => {
    response.writeHead(200, { 'Content-Length': '100' });
    response.write('only so much', () => response.destroy());
  });
  await using sandbox = startDeliverer({ retry: ONE_ATTEMPT });

  const { attempts } = await sandbox.until(sandbox.tell(newNotification({ url: receiver.url })), 'delivered');

  expect(attempts).toMatchObject([{ httpStatus: 200, error: null }]);
});

test('an answer whose end never comes is late, however much of it came', async () => {
  await using receiver = await startReceiver((response) => {
    response.writeHead(200).write('{');
    const drip = setInterval(() => response.write(' '), 20);
    response.once('close', () => clearInterval(drip));
  });
  await using sandbox = startDeliverer({ retry: ONE_ATTEMPT, timeoutMs: 1_000 });

  const { attempts } = await sandbox.until(sandbox.tell(newNotification({ url: receiver.url })), 'given_up');

  expect(attempts).toMatchObject([{ httpStatus: 200, error: 'timeout' }]);
  expect(attempts[0]?.durationMs).toBeGreaterThanOrEqual(995);
});

test.each([
  ['without end', {}],
  ['of a gigabyte', { 'Content-Length': String(1024 ** 3) }],
])('an answer %s is cut off, and acknowledges all the same', async (_what, headers) => {
  let sentBytes = 0;
  const chunk = Buffer.alloc(64 * 1024, 'x');
  await using receiver = await startReceiver((response) => {
    response.writeHead(200, headers);
    const more = () => {
      while (!response.destroyed && response.write(chunk)) sentBytes += chunk.length;
    };
    response.on('drain', more);
    more();
  });
  const timeoutMs = patience(5_000);
  await using sandbox = startDeliverer({ retry: ONE_ATTEMPT, timeoutMs });

  const { attempts } = await sandbox.until(sandbox.tell(newNotification({ url: receiver.url })), 'delivered');

  expect(attempts[0]?.durationMs).toBeLessThan(0.8 * timeoutMs);
  expect(sentBytes).toBeLessThan(64 * 1024 * 1024);
});

const nowhere: LookupFunction = (_hostname, _options, callback) =>
  callback(Object.assign(new Error('no such host'), { code: 'ENOTFOUND' }), []);
const inside: LookupFunction = (_hostname, _options, callback) =>
  callback(null, [{ address: '10.0.0.7', family: 4 }]);

test.each([
  ['a host that does not exist', 'dns', 'https://nowhere.example', { lookup: nowhere }],
  [
    'a name that resolves into a private network',
    'address_refused',
    'https://in.example',
    { lookup: inside },
  ],
  ['a port of the mail system', 'address_refused', 'http://127.0.0.1:25', {}],
  ['a private address', 'address_refused', 'https://192.168.0.1', {}],
  [
    'loopback where it is not allowed any more',
    'address_refused',
    'http://127.0.0.1:8080',
    { allowLocal: false },
  ],
] as const)('%s is recorded as %s', async (_what, error, url, options) => {
  const addresses = createAddresses({ allowLocal: true, ...options });
  {
    await using sandbox = startDeliverer({ retry: ONE_ATTEMPT, addresses });

    const { attempts } = await sandbox.until(sandbox.tell(newNotification({ url })), 'given_up');

    expect(attempts).toMatchObject([{ httpStatus: null, error }]);
  }
  await addresses.close();
});

test('a port where nobody listens any more is recorded as connection', async () => {
  const receiver = await startReceiver();
  await receiver[Symbol.asyncDispose]();
  await using sandbox = startDeliverer({ retry: ONE_ATTEMPT });

  const { attempts } = await sandbox.until(sandbox.tell(newNotification({ url: receiver.url })), 'given_up');

  expect(attempts).toMatchObject([{ httpStatus: null, error: 'connection' }]);
});

test('a certificate that nobody vouches for is recorded as tls, and nothing is sent', async () => {
  await using receiver = await startReceiver(answer(200), { certificate: selfSignedCertificate() });
  await using sandbox = startDeliverer({ retry: ONE_ATTEMPT });

  const { attempts } = await sandbox.until(sandbox.tell(newNotification({ url: receiver.url })), 'given_up');

  expect(attempts).toMatchObject([{ httpStatus: null, error: 'tls' }]);
  expect(receiver.received).toEqual([]);
});

test('a server that speaks something else is recorded as not_http, one that hangs up as connection', async () => {
  await using rude = new AsyncDisposableStack();
  const listen = async (greeting: string) => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.end(greeting));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    rude.defer(() => new Promise<void>((resolve) => void server.close(() => resolve())));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  };
  await using sandbox = startDeliverer({ retry: ONE_ATTEMPT });

  const mail = sandbox.tell(newNotification({ url: await listen('220 mail.example ESMTP\r\n') }));
  const silent = sandbox.tell(newNotification({ url: await listen('') }));

  expect((await sandbox.until(mail, 'given_up')).attempts).toMatchObject([{ error: 'not_http' }]);
  expect((await sandbox.until(silent, 'given_up')).attempts).toMatchObject([{ error: 'connection' }]);
});

test('notifications of one job arrive one at a time and in order, however slow the receiver is', async () => {
  await using receiver = await startReceiver((response) => {
    setTimeout(() => response.writeHead(200).end(), 20);
  });
  await using sandbox = startDeliverer();
  const notifications = Array.from({ length: 8 }, () =>
    sandbox.tell(newNotification({ url: receiver.url, jobId: 'job_slow' })),
  );
  for (const notification of notifications) await sandbox.until(notification, 'delivered');

  const arrived = receiver.received.map(({ body }) => body.toString());
  expect(arrived).toEqual(notifications.map(({ body }) => body.toString()));
  expect(receiver.mostAtOnce()).toBe(1);
});

test('a notification that failed keeps back none that came after it', async () => {
  await using receiver = await startReceiver(answer(500, 200));
  const retry = { maxAttempts: 5, firstDelayMs: 600_000, factor: 1, maxDelayMs: 600_000, jitter: 0 };
  await using sandbox = startDeliverer({ retry });
  const first = sandbox.tell(newNotification({ url: receiver.url, jobId: 'job_same' }));
  const second = sandbox.tell(newNotification({ url: receiver.url, jobId: 'job_same' }));

  await sandbox.until(second, 'delivered');

  expect(sandbox.store.find(first.id)).toMatchObject({ state: 'pending', attempts: [{ httpStatus: 500 }] });
});

test('so many jobs are told at once and no more, and one that hangs keeps back no other', async () => {
  await using slow = await startReceiver(hang);
  await using quick = await startReceiver((response) => {
    setTimeout(() => response.writeHead(200).end(), 10);
  });
  await using sandbox = startDeliverer({ concurrency: 4 });
  sandbox.tell(newNotification({ url: slow.url }));
  await slow.untilReceived(1);
  const notifications = Array.from({ length: 30 }, () => sandbox.tell(newNotification({ url: quick.url })));
  for (const notification of notifications) await sandbox.until(notification, 'delivered');

  expect(quick.mostAtOnce()).toBe(3);
  expect(quick.received).toHaveLength(30);
});

test('neither secret, signature, body nor address reaches the log', async () => {
  const lines: string[] = [];
  const log = pino(
    { level: 'trace' },
    new Writable({
      write: (line: Buffer, _encoding, done) => {
        lines.push(line.toString());
        done();
      },
    }),
  );
  await using receiver = await startReceiver(answer(500, 200));
  await using sandbox = startDeliverer({ log });
  const body = Buffer.from('{"job_id":"job_1","note":"private-content"}');

  const notification = sandbox.tell(newNotification({ url: `${receiver.url}?token=private-token`, body }));
  await sandbox.until(notification, 'delivered');

  const text = lines.join('');
  expect(lines).toHaveLength(2);
  expect(text).toContain(notification.id);
  for (const secret of [SECRET, sign(body, SECRET), 'private-content', 'private-token']) {
    expect(text).not.toContain(secret);
  }
});
