// Ordinary HTTP: addresses, methods, encodings and limits, through a client library that knows nothing of us.

// oxlint-disable vitest/no-standalone-expect -- `it` is vitest's test with a fixture, which the rule does not know

import { gzipSync } from 'node:zlib';
import request from 'supertest';
import { describe, expect, test } from 'vitest';
import { deliveries, events } from '../../support/ledger.ts';
import { openRaw, rawPost } from '../../support/raw-http.ts';
import { completed, deliver, newJobId, sign } from '../../support/sender.ts';
import { testWithService as it } from '../../support/fixtures.ts';
import { startTestService } from '../../support/service.ts';
import { shareTestService } from '../../support/shared-service.ts';

const signed = (body: string) => ({ 'X-Service-Signature': sign(body) });
const chunked = (...chunks: string[]) =>
  `${chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')}0\r\n\r\n`;

/** A notification of exactly so many bytes. */
function sized(bytes: number): string {
  const content = completed(newJobId(), { pad: '' });
  return JSON.stringify({ ...content, pad: 'x'.repeat(bytes - JSON.stringify(content).length) });
}

describe('addresses and methods', () => {
  test('a query is no part of the address', async () => {
    await using relay = await startTestService();
    const body = JSON.stringify(completed(newJobId()));

    await request(relay.intake)
      .post('/webhooks?token=planted')
      .set(signed(body))
      .type('json')
      .send(body)
      .expect(202);

    expect(await deliveries(relay.database)).toMatchObject([{ path: '/webhooks' }]);
  });

  it('addresses are exact: another case, a slash more or a part more is another address', async ({
    relay,
  }) => {
    const paths = [
      '/',
      '/WEBHOOKS',
      '/Webhooks',
      '/webhooks/',
      '/webhooks/default/',
      '/webhooks/a/b',
      '//webhooks',
      '/webhooks//',
      '/webhook',
      '/webhooks.json',
      '/LIVEZ',
      '/livez/',
      '/metrics',
    ];

    const jobId = newJobId();
    for (const path of paths) {
      const body = JSON.stringify(completed(jobId));
      const { status, body: answer } = await request(relay.intake)
        .post(path)
        .set(signed(body))
        .type('json')
        .send(body);
      expect({ path, status, answer }).toEqual({
        path,
        status: 404,
        answer: { error: 'not_found', message: expect.any(String) },
      });
    }
    expect((await events(relay.database)).filter(({ job_id }) => job_id === jobId)).toEqual([]);
  });

  it('a POST to what can only be read is answered in our form, too', async ({ relay }) => {
    for (const path of ['/livez', '/readyz']) {
      await request(relay.intake)
        .post(path)
        .expect(404)
        .expect(({ body }) => expect(body).toEqual({ error: 'not_found', message: expect.any(String) }));
    }
  });

  it.for(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'])(
    '%s to a webhook address is 405 with Allow',
    async (method, { relay }) => {
      const own = `/webhooks/${method.toLowerCase()}`;
      for (const path of ['/webhooks', own]) {
        using connection = await openRaw(relay.service.port);
        connection.write(`${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
        await connection.closed;
        const [head, body = ''] = connection.text().split('\r\n\r\n');
        expect(head).toMatch(/^HTTP\/1\.1 405 Method Not Allowed\r\n/);
        expect(`${head}\r\n`).toContain('\r\nAllow: POST\r\n');
        // An answer to HEAD has no body.
        expect(JSON.parse(body || 'null')).toEqual(
          method === 'HEAD' ? null : { error: 'method_not_allowed', message: expect.any(String) },
        );
      }
      await expect
        .poll(async () => (await deliveries(relay.database)).filter(({ path }) => path === own))
        .toMatchObject([
          { outcome: 'refused', http_status: 405, source: 'unknown', reason: 'method_not_allowed' },
        ]);
    },
  );

  it('a source name that cannot be decoded is a bad request in our form', async ({ relay }) => {
    await request(relay.intake)
      .post('/webhooks/%zz')
      .expect(400)
      .expect(({ body }) => expect(body).toEqual({ error: 'bad_request', message: expect.any(String) }));
  });

  it('an answer reveals nothing about our software', async ({ relay }) => {
    const answers = await Promise.all(
      ['/webhooks', '/nowhere', '/livez'].map((path) => request(relay.intake).get(path)),
    );

    for (const { headers } of answers) {
      expect(Object.keys(headers)).not.toContain('x-powered-by');
      expect(Object.keys(headers)).not.toContain('server');
    }
  });
});

test('no answer of the intake can be read as another type than it names', async () => {
  await using relay = await startTestService({ env: { BODY_LIMIT_BYTES: '1024' } });
  const body = JSON.stringify(completed(newJobId()));
  const post = () => request(relay.intake).post('/webhooks').type('json');
  const answers = await Promise.all([
    post().set(signed(body)).send(body),
    post().send(body),
    post().send('x'.repeat(2_000)),
    post().set('Content-Encoding', 'br').send(body),
    request(relay.intake).post('/webhooks/%ff').type('json').send(body),
    ...['/webhooks', '/nowhere', '/livez', '/readyz', '/webhooks/%zz'].map((path) =>
      request(relay.intake).get(path),
    ),
  ]);

  expect(answers.map(({ status }) => status)).toEqual([202, 401, 413, 415, 400, 405, 404, 200, 200, 400]);
  expect(answers.map(({ headers }) => headers['x-content-type-options'])).toEqual(
    answers.map(() => 'nosniff'),
  );
});

describe('content', () => {
  it.for([
    undefined,
    'text/plain',
    'application/xml',
    'application/json; charset=latin1',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'not even a type',
    '',
  ])('Content-Type %j refuses nothing', async (contentType, { relay }) => {
    const body = JSON.stringify(completed(newJobId(), { letter: 'é' }));

    using connection = await openRaw(relay.service.port);
    connection.write(rawPost(body, { ...signed(body), 'Content-Type': contentType }));

    expect(await connection.replies()).toMatchObject([{ status: 202, body: { outcome: 'accepted' } }]);
  });

  it.for(['gzip', 'GZIP', 'deflate', 'br', 'zstd', 'gzip, identity', 'x'])(
    'Content-Encoding %s is 415, and the connection is closed with the body unread',
    async (encoding, { relay }) => {
      const jobId = newJobId();
      const body = gzipSync(JSON.stringify(completed(jobId))).toString('latin1');

      using connection = await openRaw(relay.service.port);
      connection.write(rawPost(body, { ...signed(body), 'Content-Encoding': encoding }));

      expect(await connection.replies()).toMatchObject([
        {
          status: 415,
          headers: { connection: 'close' },
          body: { error: 'unsupported_media_type', message: expect.any(String) },
        },
      ]);
      await connection.closed;
      expect((await events(relay.database)).filter(({ job_id }) => job_id === jobId)).toEqual([]);
    },
  );

  it.for(['identity', 'Identity', ' identity '])(
    'Content-Encoding %j is none',
    async (encoding, { relay }) => {
      const body = JSON.stringify(completed(newJobId()));

      using connection = await openRaw(relay.service.port);
      connection.write(rawPost(body, { ...signed(body), 'Content-Encoding': encoding }));

      expect(await connection.replies()).toMatchObject([{ status: 202 }]);
    },
  );

  it.for(['gzip, chunked', 'deflate,chunked', 'GZip , Chunked'])(
    'Transfer-Encoding %s is 415',
    async (encoding, { relay }) => {
      const body = JSON.stringify(completed(newJobId()));
      const own = `/webhooks/${newJobId()}`;

      using connection = await openRaw(relay.service.port);
      connection.write(
        rawPost(
          chunked(body),
          { ...signed(body), 'Content-Length': undefined, 'Transfer-Encoding': encoding },
          `POST ${own} HTTP/1.1`,
        ),
      );

      expect(await connection.replies()).toMatchObject([
        { status: 415, headers: { connection: 'close' }, body: { error: 'unsupported_media_type' } },
      ]);
      await expect
        .poll(async () => (await deliveries(relay.database)).filter(({ path }) => path === own))
        .toMatchObject([{ outcome: 'refused', http_status: 415 }]);
    },
  );

  it.for(['chunked', 'Chunked'])(
    'Transfer-Encoding %s is fine, in however many chunks',
    async (encoding, { relay }) => {
      const body = JSON.stringify(completed(newJobId()));

      using connection = await openRaw(relay.service.port);
      connection.write(
        rawPost(chunked(...(body.match(/.{1,7}/g) ?? [])), {
          ...signed(body),
          'Content-Length': undefined,
          'Transfer-Encoding': encoding,
        }),
      );

      expect(await connection.replies()).toMatchObject([{ status: 202, body: { outcome: 'accepted' } }]);
    },
  );

  test('a body is read as bytes: the signature is over what was sent, whatever it is', async () => {
    await using relay = await startTestService();
    const bytes = Buffer.concat([Buffer.from(JSON.stringify(completed(newJobId()))), Buffer.from('\r\n\t ')]);

    expect(await deliver(relay.webhooks, bytes)).toMatchObject({ status: 202 });
    const [delivery] = await deliveries(relay.database);
    expect(delivery?.body?.equals(bytes)).toBe(true);
  });
});

describe('the body limit', () => {
  const shared = shareTestService({ env: { BODY_LIMIT_BYTES: '4096' } });

  test('exactly at the limit a body is accepted, by its length and in chunks', async () => {
    const relay = shared();
    const [one, two] = [sized(4_096), sized(4_096)];
    expect(Buffer.byteLength(one)).toBe(4_096);

    using connection = await openRaw(relay.service.port);
    connection.write(rawPost(one, signed(one)));
    connection.write(
      rawPost(chunked(two.slice(0, 4_000), two.slice(4_000)), {
        ...signed(two),
        'Content-Length': undefined,
        'Transfer-Encoding': 'chunked',
      }),
    );

    expect(await connection.replies(2)).toMatchObject([{ status: 202 }, { status: 202 }]);
  });

  test('one byte more is 413 by its length, before a byte of it was sent, and the connection is closed', async () => {
    const relay = shared();

    using connection = await openRaw(relay.service.port);
    connection.write(rawPost('', { 'Content-Length': '4097' }));

    expect(await connection.replies()).toMatchObject([
      {
        status: 413,
        headers: { connection: 'close' },
        body: { error: 'payload_too_large', message: 'the body is larger than 4096 bytes' },
      },
    ]);
    await connection.closed;
  });

  test('one byte more is 413 in chunks, as soon as it came, and the connection is closed', async () => {
    const relay = shared();
    const body = sized(4_097);
    const before = await events(relay.database);

    using connection = await openRaw(relay.service.port);
    connection.write(
      `POST /webhooks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nX-Service-Signature: ${sign(body)}\r\n\r\n` +
        `1001\r\n${body}\r\n`, // and never an end
    );

    expect(await connection.replies()).toMatchObject([
      { status: 413, headers: { connection: 'close' }, body: { error: 'payload_too_large' } },
    ]);
    await connection.closed;
    expect(await events(relay.database)).toEqual(before);
  });

  test('the default is 256 KiB', async () => {
    await using relay = await startTestService();

    expect(await deliver(relay.webhooks, sized(256 * 1024))).toMatchObject({ status: 202 });
    using connection = await openRaw(relay.service.port);
    connection.write(rawPost('', { 'Content-Length': String(256 * 1024 + 1) }));
    expect(await connection.replies()).toMatchObject([{ status: 413 }]);
  });

  test('an ordinary client that sends far too much gets its answer, and not a broken connection', async () => {
    const relay = shared();

    for (let sent = 0; sent < 10; sent++) {
      expect(await deliver(relay.webhooks, 'x'.repeat(100_000))).toMatchObject({
        status: 413,
        body: { error: 'payload_too_large' },
      });
    }
  });
});

test('every error of the intake is an object of two texts, error and message, and nothing else', async () => {
  await using relay = await startTestService({ env: { BODY_LIMIT_BYTES: '1024' } });
  const body = 'x'.repeat(100);
  const answers = await Promise.all([
    request(relay.intake).get('/nowhere'),
    request(relay.intake).get('/webhooks'),
    request(relay.intake).post('/webhooks').type('json').send(body),
    request(relay.intake).post('/webhooks').type('json').set(signed(body)).send(body),
    request(relay.intake).post('/webhooks').type('json').set('Content-Encoding', 'br').send(body),
    request(relay.intake).post('/webhooks').type('json').send(body.repeat(20)),
    request(relay.intake).post('/webhooks/%ff').type('json').send(body),
    request(relay.operators).get('/nowhere'),
    request(relay.operators).post('/metrics'),
    request(relay.operators).get('/%zz'),
  ]);

  expect(answers.map(({ status }) => status)).toEqual([404, 405, 401, 400, 415, 413, 400, 404, 405, 400]);
  for (const { body: answer, headers } of answers) {
    expect(answer).toEqual({
      error: expect.stringMatching(/^[a-z_]+$/),
      message: expect.stringMatching(/\w/),
    });
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
  }
});
