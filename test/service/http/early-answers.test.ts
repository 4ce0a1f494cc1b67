// Answers that are given while the body still comes, on connections that are kept alive: each is the answer that its cause has,
// whole, in our form, and the last one of its connection.

// oxlint-disable vitest/no-standalone-expect -- `it` is vitest's test with a fixture, which the rule does not know

import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { promisedMs } from '../../support/patience.ts';
import { openRaw, rawPost } from '../../support/raw-http.ts';
import { completed, newJobId, sign } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';

const MIB = 1024 * 1024;
const LIMIT_BYTES = MIB - 1;
const SIGNATURE = { 'X-Service-Signature': sign('another body') };
const CHUNKED = { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' };
const PIECE = Buffer.alloc(16 * 1024, 'x');

type Raw = Awaited<ReturnType<typeof openRaw>>;

/** A connection that has brought a delivery already. */
async function openKeptAlive({ service }: TestService): Promise<Raw> {
  const connection = await openRaw(service.port);
  const body = JSON.stringify(completed(newJobId()));
  connection.write(rawPost(body, { 'X-Service-Signature': sign(body) }));
  expect(await connection.replies()).toMatchObject([{ status: 202, headers: { connection: 'keep-alive' } }]);
  return connection;
}

/** Goes on to send until the connection ends. @returns the answer to it */
async function lastAnswer(connection: Raw, piece: Buffer | string = PIECE) {
  const sending = setInterval(() => connection.write(piece), 5);
  await connection.closed.finally(() => clearInterval(sending));
  const replies = await connection.replies(2);
  expect(replies).toHaveLength(2);
  return replies[1];
}

const it = test.extend<{ relay: TestService }>({
  relay: [
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what is needed from it
    async ({}, use) => {
      const env = {
        ANSWER_DEADLINE_MS: String(promisedMs(700)),
        BODY_LIMIT_BYTES: String(LIMIT_BYTES),
        UNVERIFIED_BODY_BYTES: String(MIB),
        REFUSED_ROWS_PER_MINUTE: '10000',
      };
      await using relay = await startTestService({ env });
      await use(relay);
    },
    { scope: 'file' },
  ],
});

const announced = (bytes: number, more = {}, requestLine?: string) =>
  rawPost('', { ...SIGNATURE, 'Content-Length': String(bytes), ...more }, requestLine);

it.for([
  ['a request without Host', announced(99_999, { Host: undefined }), 400, 'bad_request'],
  ['another address', announced(99_999, {}, 'POST /a HTTP/1.1'), 404, 'not_found'],
  ['another method', announced(99_999, {}, 'PUT /webhooks HTTP/1.1'), 405, 'method_not_allowed'],
  ['a body that is late', announced(999_999), 408, 'request_timeout'],
  ['a body that is too large by its length', announced(MIB), 413, 'payload_too_large'],
  ['a body that grows too large', `${announced(0, CHUNKED)}fffffff\r\n`, 413, 'payload_too_large'],
  ['an encoded body', announced(99_999, { 'Content-Encoding': 'gzip' }), 415, 'unsupported_media_type'],
  ['an expectation that nobody knows', announced(99_999, { Expect: 'miracles' }), 417, 'expectation_failed'],
  ['a head that is too large', rawPost('').replace('\r\n\r\n', '\r\nX-Large: '), 431, 'headers_too_large'],
] as const)(
  'while it still comes on a kept-alive connection, %s gets its own answer, whole, and the connection ends',
  async ([, head, status, error], { relay }) => {
    using connection = await openKeptAlive(relay);
    connection.write(head);

    expect(await lastAnswer(connection, status === 408 ? 'x' : PIECE)).toMatchObject({
      status,
      headers: { connection: 'close', 'content-type': 'application/json; charset=utf-8' },
      body: { error, message: expect.any(String) },
    });
  },
);

/** Sends for a while before it reads, as a proxy may. @returns what it then reads, and the error that ended the connection */
async function readAfterwards(
  port: number,
  head: string,
): Promise<{ text: string; error: string | undefined }> {
  let text = '';
  let error: string | undefined;
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).pause();
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  socket.on('data', (chunk) => (text += chunk.toString('latin1')));
  socket.on('end', () => socket.end());
  socket.on('error', ({ message }) => (error = message));
  socket.write(head);
  for (let piece = 0; piece < 40; piece += 1) {
    if (!socket.destroyed) socket.write(PIECE);
    await sleep(5);
  }
  socket.resume();
  await closed;
  return { text, error };
}

it('an answer is not lost by a reset for a sender that still sends before it reads', async ({ relay }) => {
  const { text, error } = await readAfterwards(relay.service.port, announced(3 * MIB));
  expect({ status: text.slice(0, 12), error }).toEqual({ status: 'HTTP/1.1 413', error: undefined });
});

it.for([
  ['by a chunk of its own', 0, 900_000],
  ['by its own last chunk', 0, 800_000],
  ['by the chunk of another', 1, 900_000],
] as const)('a reader that is shed for memory %s gets 503', async ([, over, bytes], { relay }) => {
  using oldest = await openKeptAlive(relay);
  using other = await openKeptAlive(relay);
  oldest.write(announced(bytes) + 'x'.repeat(500_000));
  await expect.poll(() => heldBytes(relay)).toBeGreaterThan(400_000);
  other.write(announced(900_000) + 'x'.repeat(400_000));
  await expect.poll(() => heldBytes(relay)).toBeGreaterThan(800_000);
  [oldest, other][over]?.write('x'.repeat(300_000));

  expect((await oldest.replies(2))[1]).toMatchObject({
    status: 503,
    headers: { 'retry-after': '2' },
    body: { error: 'unavailable' },
  });
  expect((await other.replies(2))[1]).toMatchObject({ status: 408 });
  await expect.poll(() => heldBytes(relay)).toBe(0);
});

/** For bodies that are being read. */
async function heldBytes({ operators }: TestService): Promise<number> {
  const text = await (await fetch(`${operators}/metrics`)).text();
  return Number(/^tallyhook_unverified_body_bytes (\d+)$/m.exec(text)?.[1]);
}
