// The ways in which a proxy breaks a link that only this harness uses.

import { connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listenOnFreePort } from '../support/origin.ts';
import { startProxy } from '../support/proxy.ts';

const ANSWER = 'x'.repeat(1_000);
let target: string;
const server = createServer((socket) => {
  socket.on('error', () => {});
  socket.on('data', () => socket.write(ANSWER));
});

beforeAll(async () => {
  target = `http://127.0.0.1:${await listenOnFreePort(server)}`;
});

afterAll(() => void server.close());

type Client = Disposable & {
  readonly ask: () => void;
  /** Resolves with all that came so far, once it is at least so many bytes. */
  readonly got: (bytes: number) => Promise<string>;
  /** How it ended, with all that had come. */
  readonly ended: Promise<{ code: string | undefined; text: string }>;
};

async function open(port: number): Promise<Client> {
  const socket: Socket = connect({ port, host: '127.0.0.1' });
  let text = '';
  let code: string | undefined;
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
    socket.emit('more');
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    ({ code } = error);
  });
  const ended = new Promise<{ code: string | undefined; text: string }>((resolve) => {
    socket.on('close', () => resolve({ code, text }));
  });
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  return {
    ask: () => void socket.write('?'),
    got: (bytes) =>
      new Promise((resolve) => {
        const check = () => {
          if (text.length >= bytes) resolve(text);
        };
        socket.on('more', check);
        check();
      }),
    ended,
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

test('a reset reaches the client as a reset', async () => {
  await using proxy = await startProxy(target, { defaultPort: 80, counts: 'bytes' });
  using client = await open(proxy.port);
  client.ask();
  await client.got(ANSWER.length);
  proxy.reset();
  expect((await client.ended).code).toBe('ECONNRESET');
});

test('a slow link delivers everything, later and in order', async () => {
  await using proxy = await startProxy(target, { defaultPort: 80, counts: 'bytes' });
  using client = await open(proxy.port);
  proxy.slow(60);
  const startMs = performance.now();
  client.ask();
  expect(await client.got(ANSWER.length)).toBe(ANSWER);
  expect(performance.now() - startMs).toBeGreaterThanOrEqual(110);
});

test('a connection that is to be cut ends in the middle of the answer', async () => {
  await using proxy = await startProxy(target, { defaultPort: 80, counts: 'bytes' });
  proxy.failAfterBytes(300, 'cut');
  using client = await open(proxy.port);
  client.ask();
  const { code, text } = await client.ended;
  expect({ code, bytes: text.length }).toEqual({ code: undefined, bytes: 300 });
});

test('a connection that is to be reset is reset in the middle of the answer', async () => {
  await using proxy = await startProxy(target, { defaultPort: 80, counts: 'bytes' });
  proxy.failAfterBytes(300, 'reset');
  using client = await open(proxy.port);
  client.ask();
  const { code, text } = await client.ended;
  expect(code).toBe('ECONNRESET');
  expect(text.length).toBeLessThanOrEqual(300);
});

test('a connection that has not gone wrong yet does not once it is healed', async () => {
  await using proxy = await startProxy(target, { defaultPort: 80, counts: 'bytes' });
  proxy.failAfterBytes(ANSWER.length + 300, 'stall');
  using client = await open(proxy.port);
  client.ask();
  await client.got(ANSWER.length);
  proxy.heal();

  client.ask();

  expect(await client.got(2 * ANSWER.length)).toHaveLength(2 * ANSWER.length);
});

test('a connection that is to stall delivers so many bytes and then nothing, and new ones pass once it is healed', async () => {
  await using proxy = await startProxy(target, { defaultPort: 80, counts: 'bytes' });
  proxy.failAfterBytes(300, 'stall');
  using client = await open(proxy.port);
  client.ask();
  expect(await client.got(300)).toHaveLength(300);
  proxy.heal();
  using next = await open(proxy.port);
  next.ask();
  expect(await next.got(ANSWER.length)).toBe(ANSWER);
});
