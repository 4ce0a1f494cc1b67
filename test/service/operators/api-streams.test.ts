// A streamed answer is made no faster than it is read, and no longer than somebody reads it.

import { createServer } from 'node:http';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import express from 'express';
import { expect, test } from 'vitest';
import { sendStream } from '../../../src/operators/kernel/operation/answers.ts';
import { listen } from '../../../src/http/lifecycle.ts';
import { patience } from '../../support/patience.ts';
import { createTestLog } from '../../support/service.ts';

const CHUNK = Buffer.alloc(64 * 1024, 'x');

/** A server whose one answer is `stream`, and a reader that takes what it asks for and no more. */
async function startStreaming(stream: Readable) {
  const { log, lines } = createTestLog();
  const app = express();
  app.get('/', async (_request, response) => {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    await sendStream(
      response,
      { status: 200, contentType: 'text/plain', stream },
      { signal: gone.signal, log },
    );
  });
  const server = createServer(app);
  const port = await listen(server, { host: '127.0.0.1', port: 0 });
  const reader = connect({ port, host: '127.0.0.1' });
  reader.on('error', () => {});
  reader.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  return {
    reader,
    lines,
    [Symbol.asyncDispose]: async () => {
      reader.destroy();
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

test('an endless answer waits for a reader that takes nothing, and ends when he leaves', async () => {
  let made = 0;
  const stream = new Readable({
    read() {
      made += 1;
      this.push(CHUNK);
    },
  });
  await using streaming = await startStreaming(stream);
  streaming.reader.pause();
  await expect.poll(() => made).toBeGreaterThan(0);
  // The sockets' own buffers take some megabytes on both sides; then it rests.
  let before = -1;
  await expect
    .poll(
      () => {
        const rests = made === before;
        before = made;
        return rests;
      },
      { interval: 300, timeout: patience(10_000) },
    )
    .toBe(true);
  const atRest = made;
  expect(atRest * CHUNK.length).toBeLessThan(64 * 1024 * 1024);

  streaming.reader.resume();
  await expect.poll(() => made).toBeGreaterThan(atRest);

  streaming.reader.destroy();
  await expect.poll(() => stream.destroyed).toBe(true);
  expect(streaming.lines).toEqual([]);
});

test('an answer that fails half-way is cut, and does not look whole', async () => {
  const stream = Readable.from(
    (async function* () {
      yield CHUNK;
      throw new Error('out of rows');
    })(),
  );
  await using streaming = await startStreaming(stream);
  let text = '';
  streaming.reader.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });

  await new Promise((ended) => streaming.reader.once('close', ended));

  expect(text).toMatch(/^HTTP\/1.1 200 /);
  expect(text.endsWith('0\r\n\r\n')).toBe(false);
  expect(streaming.lines).toEqual([
    expect.objectContaining({
      msg: 'a streamed answer broke off',
      err: expect.objectContaining({ message: 'out of rows' }),
    }),
  ]);
});

test('an answer whose reader has left frees its place', async () => {
  const stream = new Readable({ read() {} });
  const { promise: sent, resolve } = Promise.withResolvers<void>();
  const { log, lines } = createTestLog();
  const app = express();
  app.get('/', (_request, response) => {
    response.once('close', () => {
      const { signal } = new AbortController();
      void sendStream(response, { status: 200, contentType: 'text/plain', stream }, { signal, log }).then(
        resolve,
      );
    });
  });
  const server = createServer(app);
  const port = await listen(server, { host: '127.0.0.1', port: 0 });
  const reader = connect({ port, host: '127.0.0.1' });
  reader.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  server.once('request', () => reader.destroy());
  await sent;
  await new Promise((closed) => server.close(closed));

  expect(stream.destroyed).toBe(true);
  expect(lines).toEqual([]);
});
