import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createBodies as createWith } from '../../../src/intake/bodies.ts';
import { createDeadlines } from '../../../src/intake/deadlines.ts';

const KIB = 1024;

/** A request whose body comes as the test likes. */
function requestOf(headers: Record<string, string> = {}) {
  const stream = Object.assign(new Readable({ read: () => {} }), {
    headers,
    socket: Object.assign(new EventEmitter(), {
      isPaused: false,
      pause: () => {
        stream.socket.isPaused = true;
      },
      resume: () => {
        stream.socket.isPaused = false;
      },
    }),
  });
  return stream as unknown as Readable & IncomingMessage & { socket: { isPaused: boolean } };
}

const now = () => performance.now();
const createBodies = (budget: { budgetBytes: number }) =>
  createWith({ ...budget, deadlines: createDeadlines({ now }) });
const within = (patienceMs: number) => ({
  isBuffered: true,
  limitBytes: 256 * KIB,
  deadlineMs: now() + patienceMs,
});

async function arrive(request: Readable, ...chunks: (string | Buffer)[]): Promise<void> {
  for (const chunk of chunks) request.push(chunk);
  await setImmediate(); // it was read
  await setImmediate(); // and its socket is paused, if it is to be
}

describe('a body that is held', () => {
  test.for([
    ['nothing', []],
    ['one chunk', ['abc']],
    ['chunks of every size', ['a', 'bc', 'd'.repeat(5_000), 'e', 'f'.repeat(70_000), 'gh']],
    ['many small ones', Array.from({ length: 3_000 }, (_, index) => String(index))],
  ] as const)('of %s arrives as it was sent', async ([, chunks]) => {
    const bodies = createBodies({ budgetBytes: 1024 * KIB });
    const request = requestOf();
    const body = bodies.read(request, within(5_000));
    for (const chunk of chunks) request.push(chunk);
    request.push(null);

    expect(await body).toEqual({ kind: 'buffered', bytes: Buffer.from(chunks.join('')) });
    expect(bodies.bufferedBytes()).toBe(0);
  });

  test('costs what has arrived and not what it announces', async () => {
    const bodies = createBodies({ budgetBytes: 1024 * KIB });
    const request = requestOf({ 'content-length': String(200 * KIB) });
    const body = bodies.read(request, within(5_000));
    expect(bodies.bufferedBytes()).toBe(0);
    await arrive(request, Buffer.alloc(100));
    expect(bodies.bufferedBytes()).toBe(100);
    await arrive(request, Buffer.alloc(64 * KIB), Buffer.alloc(64 * KIB));
    expect(bodies.bufferedBytes()).toBeGreaterThanOrEqual(128 * KIB + 100);
    expect(bodies.bufferedBytes()).toBeLessThanOrEqual(200 * KIB);
    request.destroy();

    expect(await body).toEqual({ kind: 'incomplete' });
    expect(bodies.bufferedBytes()).toBe(0);
  });

  test('of the largest size fits into a budget of that size, in any chunks', async () => {
    const bodies = createBodies({ budgetBytes: 256 * KIB });
    const request = requestOf();
    const body = bodies.read(request, within(5_000));
    for (let rest = 256 * KIB; rest > 0; rest -= 1_000)
      request.push(Buffer.alloc(Math.min(1_000, rest), 'x'));
    request.push(null);

    expect(await body).toEqual({ kind: 'buffered', bytes: Buffer.alloc(256 * KIB, 'x') });
  });

  test('in chunks of one byte costs no more than twice its bytes', async () => {
    const bodies = createBodies({ budgetBytes: 1024 * KIB });
    const request = requestOf();
    const body = bodies.read(request, within(5_000));
    await arrive(request, ...Array.from({ length: 10_000 }, () => 'x'));

    expect(bodies.bufferedBytes()).toBeLessThanOrEqual(20_000);
    request.push(null);
    expect(await body).toEqual({ kind: 'buffered', bytes: Buffer.alloc(10_000, 'x') });
  });
});

describe('past the budget', () => {
  test('the body that is read for longest is shed, and those after it are read on', async () => {
    const bodies = createBodies({ budgetBytes: 100 * KIB });
    const requests = [requestOf(), requestOf(), requestOf(), requestOf()];
    const [silent, stalled, slow, fresh] = requests.map((request, index) =>
      bodies.read(request, within(index === 1 ? 200 : 5_000)),
    );
    await arrive(requests[1] as Readable, Buffer.alloc(50 * KIB));
    await arrive(requests[2] as Readable, Buffer.alloc(40 * KIB));
    await arrive(requests[3] as Readable, Buffer.alloc(20 * KIB, 'x'));

    expect(bodies.bufferedBytes()).toBe(60 * KIB);
    expect(requests.map(({ socket }) => socket.isPaused)).toEqual([false, true, false, false]);
    await arrive(requests[1] as Readable, Buffer.alloc(KIB)); // had been read already
    expect(requests[1]?.readableLength).toBe(0); // dropped
    expect(bodies.bufferedBytes()).toBe(60 * KIB);
    expect(await stalled).toEqual({ kind: 'shed' }); // once its time is over
    expect(requests[1]?.socket.isPaused).toBe(false);
    for (const request of requests) request.push(null);
    expect(await fresh).toMatchObject({ kind: 'buffered', bytes: Buffer.alloc(20 * KIB, 'x') });
    expect(await slow).toMatchObject({ kind: 'buffered' });
    expect(await silent).toMatchObject({ kind: 'buffered' }); // it held nothing that could be given back
  });

  test('a whole body that is shed before it was taken is not taken for another', async () => {
    const bodies = createBodies({ budgetBytes: 100 * KIB });
    const [whole, other] = [requestOf(), requestOf()];
    const body = bodies.read(whole, within(50));
    const others = bodies.read(other, within(5_000));
    await arrive(whole, Buffer.alloc(60 * KIB));
    whole.once('end', () => other.push(Buffer.alloc(60 * KIB)));
    whole.push(null);

    expect(await body).toEqual({ kind: 'shed' });
    other.push(null);
    expect(await others).toMatchObject({ kind: 'buffered' });
    expect(bodies.bufferedBytes()).toBe(0);
  });

  test('a body that is not held costs nothing, and is counted', async () => {
    const bodies = createBodies({ budgetBytes: KIB });
    const request = requestOf();
    const body = bodies.read(request, { ...within(5_000), isBuffered: false });
    await arrive(request, Buffer.alloc(100 * KIB), Buffer.alloc(100 * KIB));
    expect(bodies.bufferedBytes()).toBe(0);
    request.push(null);

    expect(await body).toEqual({ kind: 'counted', length: 200 * KIB });
  });
});

describe.for([true, false])('held: %s, a body', (isBuffered) => {
  const bodies = createBodies({ budgetBytes: 1024 * KIB });

  test('that announces more than the limit is not read at all', async () => {
    const request = requestOf({ 'content-length': '11' });

    expect(await bodies.read(request, { ...within(5_000), isBuffered, limitBytes: 10 })).toEqual({
      kind: 'too-large',
    });
    expect(request.listenerCount('data')).toBe(0);
  });

  test('that grows past the limit is not kept any further', async () => {
    const request = requestOf();
    const body = bodies.read(request, { ...within(5_000), isBuffered, limitBytes: 10 });
    await arrive(request, 'x'.repeat(10), 'x');

    expect(await body).toEqual({ kind: 'too-large' });
    await arrive(request, 'y');
    expect(request.readableLength).toBe(0); // dropped
    expect(bodies.bufferedBytes()).toBe(0);
  });

  test('that does not end in time is late', async () => {
    const request = requestOf();
    const body = bodies.read(request, { ...within(20), isBuffered });
    await arrive(request, 'x');

    expect(await body).toEqual({ kind: 'late' });
    expect(bodies.bufferedBytes()).toBe(0);
  });

  test('that breaks off is incomplete', async () => {
    const request = requestOf();
    const body = bodies.read(request, { ...within(5_000), isBuffered });
    await arrive(request, 'x');
    request.destroy(new Error('aborted'));

    expect(await body).toEqual({ kind: 'incomplete' });
    request.on('error', () => {});
  });
});
