import { createServer, type Socket } from 'node:net';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { assert, nat, property } from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { createAnswerReader } from '../../bench/load/answers.ts';
import { createMarks, createTimes } from '../../bench/load/by-number.ts';
import { createFlow, type Flow } from '../../bench/load/flow.ts';
import { createLatencies, recordUs, summarize } from '../../bench/load/latency.ts';
import { bodyOf, eventIdOf, numberOf, requestOf } from '../../bench/load/notifications.ts';
import { createQueue } from '../../bench/load/queue.ts';
import { createSequence, createStock } from '../../bench/load/stock.ts';
import { eventSchemas } from '../../src/event/index.ts';

function ignore(): void {}

const ANSWER = 'HTTP/1.1 202 Accepted\r\nContent-Length: 7\r\n\r\n{"a":1}';

describe('answers', () => {
  test('an answer is understood wherever the stream was cut', () => {
    for (let cut = 1; cut < ANSWER.length; cut++) {
      const read = createAnswerReader();
      expect(read(Buffer.from(ANSWER.slice(0, cut)))).toEqual([]);
      expect(read(Buffer.from(ANSWER.slice(cut)))).toEqual([{ status: 202, closes: false }]);
    }
  });

  test('two answers in one chunk are two, and a wish to close is seen', () => {
    const closing = ANSWER.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
    expect(createAnswerReader()(Buffer.from(ANSWER + closing))).toEqual([
      { status: 202, closes: false },
      { status: 202, closes: true },
    ]);
  });

  test('what is no answer is an error and no guess', () => {
    const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
    expect(() => createAnswerReader()(Buffer.from(chunked))).toThrow('no answer that we can read');
  });
});

describe('notifications', () => {
  test('an event’s id leads back to the number of its notification', () => {
    assert(
      property(nat(10_000_000), (number) => {
        expect(numberOf('r1', eventIdOf('r1', number))).toBe(number);
        expect(numberOf('r2', eventIdOf('r1', number))).toBeUndefined();
      }),
    );
  });

  test('a job’s life cycle is its progress and, 1,000 notifications later, its end', () => {
    const [begin, end] = [eventIdOf('r1', 50), eventIdOf('r1', 1_051)];
    expect(begin.split(':')[1]).toBe(end.split(':')[1]);
    expect([begin.split(':')[2], end.split(':')[2]]).toEqual(['processing', 'completed']);
  });

  test('every body fits the schema of its kind and has exactly its size', () => {
    for (const bytes of [512, 4_096, 65_536])
      for (let number = 995; number < 1_010; number++) {
        const body = bodyOf('r1', number, bytes);
        expect(Buffer.byteLength(body)).toBe(bytes);
        const { status } = JSON.parse(body) as { status: 'processing' | 'completed' | 'failed' };
        const schema = eventSchemas[status === 'processing' ? 'progress' : status];
        expect(schema.safeParse(JSON.parse(body)).error).toBeUndefined();
      }
  });

  test('a stock gives the signed requests that it would sign later, and counts those', () => {
    const options = { run: 'r1', secret: 's'.repeat(32), path: '/webhooks', bodyBytes: 512 };
    const stock = createStock({ ...options, count: 10 });
    const none = createStock({ ...options, count: 0 });
    for (let number = 0; number < 10; number++)
      expect(stock.request(number).equals(none.request(number))).toBe(true);
    expect([stock.signedLate(), none.signedLate()]).toEqual([0, 10]);
    expect(stock.request(3).toString()).toContain(bodyOf('r1', 3, 512));
    expect(requestOf.length).toBe(2);
  });

  test.each([0, 0.5, 0.95])('of many notifications a share of %d is copies of earlier ones', (share) => {
    const sequence = createSequence(share);
    const seen = new Set<number>();
    let copies = 0;
    const many = 200_000;
    for (let position = 0; position < many; position++) {
      const number = sequence.next();
      if (seen.has(number)) copies += 1;
      seen.add(number);
    }
    // The first ones have nothing far enough behind them to be copies of.
    expect(copies / many).toBeCloseTo(share, 1);
    expect(seen.size).toBe(sequence.fresh());
  });
});

describe('what is kept', () => {
  test('a queue gives back in order what was put in, also past its compaction', () => {
    const queue = createQueue<number>();
    for (let each = 0; each < 5_000; each++) queue.add(each);
    const taken = Array.from({ length: 5_000 }, () => queue.take());
    expect(taken).toEqual(Array.from({ length: 5_000 }, (_, each) => each));
    expect([queue.length(), queue.take()]).toEqual([0, undefined]);
  });

  test('first times and marks are taken once, far beyond the first size', () => {
    const [times, marks] = [createTimes(), createMarks()];
    expect([times.markFirst(900_000, 7), times.markFirst(900_000, 9)]).toEqual([true, false]);
    expect([marks.mark(900_000), marks.mark(900_000)]).toEqual([true, false]);
    const bytes = times.bytes(900_001);
    expect(new Float64Array(bytes.buffer, bytes.byteOffset, 900_001)[900_000]).toBe(7);
  });

  test('percentiles are those of what was recorded', () => {
    const latencies = createLatencies();
    for (let ms = 1; ms <= 1_000; ms++) recordUs(latencies, ms * 1_000);
    const { p50Ms, p99Ms, maxMs, count } = summarize(latencies);
    expect(count).toBe(1_000);
    expect(p50Ms / 500).toBeCloseTo(1, 2);
    expect(p99Ms / 990).toBeCloseTo(1, 2);
    expect(maxMs / 1_000).toBeCloseTo(1, 2);
  });
});

describe('the flow', () => {
  let flow: Flow | undefined;
  let ticks: NodeJS.Timeout | undefined;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', () => onRequest(socket));
  });
  let onRequest: (socket: Socket) => void = ignore;

  afterEach(async () => {
    clearInterval(ticks);
    flow?.close();
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });

  type Plan = Parameters<typeof createFlow>[0]['plan'];

  async function start(loop: Plan['loop'], deliveries: number, more: Partial<Plan> = {}) {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const replies: { number: number; outcome: string; us: number }[] = [];
    let fresh = 0;
    const over = Promise.withResolvers<void>();
    const created = createFlow({
      plan: {
        loop,
        ports: [(server.address() as AddressInfo).port],
        deliveries,
        onFailure: 'repeat',
        ...more,
      },
      next: () => fresh++,
      request: (number) => Buffer.from(`POST ${number}`),
      onSend: () => {},
      onReply: (number, { outcome }, { us }) => replies.push({ number, outcome, us }),
    });
    flow = created;
    ticks = setInterval(() => {
      created.tick();
      if (created.isOver()) over.resolve();
    }, 1);
    await over.promise;
    return replies;
  }

  test('a server that stalls costs every notification that was due meanwhile its time (no coordinated omission)', async () => {
    const stallMs = 300;
    let first = true;
    onRequest = (socket) => {
      // One connection, held up once: what is due behind it was not sent yet, and waits all the same.
      setTimeout(() => socket.write(ANSWER), first ? stallMs : 0);
      first = false;
    };
    const replies = await start({ kind: 'open', ratePerS: 100, connections: 1 }, 20);
    const waited = replies.filter(({ us }) => us > (stallMs / 3) * 1_000);
    // In 300 ms at 100/s thirty were due; of the 20 sent, those of the first 200 ms waited for more than 100.
    expect(waited.length).toBeGreaterThanOrEqual(15);
  });

  test('from an address of its own, each on a new connection where that is wanted', async () => {
    const ends: string[] = [];
    onRequest = (socket) => {
      ends.push(`${socket.remoteAddress}:${socket.remotePort}`);
      socket.write(ANSWER);
    };
    const own = { localAddress: '127.0.0.2', freshConnections: true };
    const replies = await start({ kind: 'closed', concurrency: 1 }, 5, own);
    expect(replies.map(({ outcome }) => outcome)).toEqual(Array.from({ length: 5 }, () => '202'));
    expect(new Set(ends).size).toBe(5);
    expect(ends.every((end) => end.startsWith('127.0.0.2:'))).toBe(true);
  });

  test('what was lost or refused is sent again until it is acknowledged', async () => {
    let requests = 0;
    onRequest = (socket) => {
      requests += 1;
      if (requests === 1) socket.destroy();
      else socket.write(requests === 2 ? ANSWER.replace('202 Accepted', '503 Unavailable') : ANSWER);
    };
    const replies = await start({ kind: 'closed', concurrency: 1 }, 2);
    expect(replies.map(({ outcome }) => outcome).toSorted()).toEqual(['202', '202', '503', 'lost']);
    const good = replies.filter(({ outcome }) => outcome === '202').map(({ number }) => number);
    expect(new Set(good)).toEqual(new Set([0, 1]));
  });
});
