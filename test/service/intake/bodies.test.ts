// Bodies over real sockets: a reader that is let go of leaves its connection fit for the answer, and what is held is held by the
// memory of the process, too.

import type { IncomingMessage } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { closeIfUnread } from '../../../src/http/index.ts';
import { type Body, createBodies, type ReadOptions } from '../../../src/intake/bodies.ts';
import { createDeadlines } from '../../../src/intake/deadlines.ts';
import { startOrigin } from '../../support/origin.ts';
import { patience } from '../../support/patience.ts';
import { openRaw, rawPost } from '../../support/raw-http.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const CHUNKED = { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' };

const now = () => performance.now();

/** What the process holds in objects and buffers, without what is garbage. */
function heldBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** A server that answers each request with what became of its body, as `kind`. */
async function startReader({
  budgetBytes = MIB,
  patienceMs = 5_000,
  ...options
}: Partial<ReadOptions> & { budgetBytes?: number; patienceMs?: number }) {
  const bodies = createBodies({ budgetBytes, deadlines: createDeadlines({ now }) });
  const requests: IncomingMessage[] = [];
  const results: Body[] = [];
  const origin = await startOrigin(async (request, response) => {
    requests.push(request);
    const deadlineMs = now() + patienceMs;
    const body = await bodies.read(request, {
      isBuffered: true,
      limitBytes: 256 * KIB,
      deadlineMs,
      ...options,
    });
    results.push(body);
    closeIfUnread(request, response);
    response.end(JSON.stringify({ kind: body.kind }));
  });
  return {
    ...bodies,
    requests,
    results,
    open: () => openRaw(origin.port),
    [Symbol.asyncDispose]: () => origin[Symbol.asyncDispose](),
  };
}

test.for([true, false])(
  'held: %s, a body that is late or too large is answered while it still comes',
  async (isBuffered) => {
    await using reader = await startReader({ isBuffered, limitBytes: 10 * KIB, patienceMs: 200 });
    using late = await reader.open();
    using large = await reader.open();
    using announced = await reader.open();

    late.write(rawPost('x'.repeat(KIB), { 'Content-Length': String(10 * KIB) }));
    announced.write(rawPost('x', { 'Content-Length': String(10 * KIB + 1) }));
    large.write(rawPost(`${(20 * KIB).toString(16)}\r\n${'x'.repeat(11 * KIB)}`, CHUNKED));

    const closed = { headers: { connection: 'close' } };
    expect(await late.replies()).toMatchObject([{ ...closed, body: { kind: 'late' } }]);
    expect(await large.replies()).toMatchObject([{ ...closed, body: { kind: 'too-large' } }]);
    expect(await announced.replies()).toMatchObject([{ ...closed, body: { kind: 'too-large' } }]);
    await Promise.all([late.closed, large.closed, announced.closed]);
    expect(reader.bufferedBytes()).toBe(0);
  },
);

test.for([true, false])('held: %s, a body that breaks off is incomplete', async (isBuffered) => {
  await using reader = await startReader({ isBuffered });
  using connection = await reader.open();
  connection.write(rawPost('x', { 'Content-Length': '2' }));
  await expect.poll(() => reader.requests).toHaveLength(1);

  connection.reset();

  await expect.poll(() => reader.results).toEqual([{ kind: 'incomplete' }]);
  expect(reader.bufferedBytes()).toBe(0);
});

test('nothing more is read from a body that is shed, and its answer arrives all the same', async () => {
  await using reader = await startReader({
    budgetBytes: 100 * KIB,
    limitBytes: 8 * MIB,
    patienceMs: patience(500),
  });
  using connection = await reader.open();
  connection.write(rawPost('x'.repeat(110 * KIB), { 'Content-Length': String(8 * MIB) }));
  await expect.poll(() => reader.requests[0]?.socket.isPaused()).toBe(true);
  expect(reader.bufferedBytes()).toBe(0);
  const bytesRead = reader.requests[0]?.socket.bytesRead;

  for (let round = 0; round < 10; round++) {
    connection.write(Buffer.alloc(100 * KIB));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(reader.results).toEqual([]);
  expect(reader.requests[0]?.socket.bytesRead).toBe(bytesRead);

  expect(await connection.replies()).toMatchObject([
    { headers: { connection: 'close' }, body: { kind: 'shed' } },
  ]);
});

test('a body that is shed with its last bytes leaves a connection that can be used again', async () => {
  await using reader = await startReader({ budgetBytes: 10 * KIB, patienceMs: 200 });
  using connection = await reader.open();
  connection.write(rawPost('x'.repeat(11 * KIB)));
  expect(await connection.replies()).toMatchObject([
    { headers: { connection: 'keep-alive' }, body: { kind: 'shed' } },
  ]);

  connection.write(rawPost('x'));

  expect((await connection.replies(2))[1]).toMatchObject({ body: { kind: 'buffered' } });
});

test('bodies in chunks of one byte cost the process what is counted for them, and not a buffer for each', async () => {
  const CONNECTIONS = 8;
  const CHUNKS = 40_000; // of each: as buffers all of them would take 190 MB
  await using reader = await startReader({ patienceMs: 60_000 });
  await using connections = new AsyncDisposableStack();
  const chunks = Buffer.from('1\r\nx\r\n'.repeat(CHUNKS));
  const before = heldBytes();
  for (let index = 0; index < CONNECTIONS; index++) {
    const connection = connections.use(await reader.open());
    connection.write(rawPost('', CHUNKED));
    connection.write(chunks);
  }
  // All have arrived, and none is whole: each is answered only after its last chunk.
  const arrived = () => reader.requests.reduce((sum, { socket }) => sum + socket.bytesRead, 0);
  await expect.poll(arrived).toBeGreaterThanOrEqual(CONNECTIONS * chunks.length);

  expect(reader.bufferedBytes()).toBeGreaterThanOrEqual(CONNECTIONS * CHUNKS);
  expect(reader.bufferedBytes()).toBeLessThanOrEqual(2 * CONNECTIONS * CHUNKS);
  expect(heldBytes() - before).toBeLessThan(16 * MIB);
});
