import { expect, test } from 'vitest';
import { createListeners } from '../../../src/operators/live/listeners.ts';
import type { Caller } from '../../../src/operators/kernel/operation/operation.ts';
import { createTestLog } from '../../support/test-log.ts';

const caller = (tokenId: string): Caller => ({
  tokenId,
  name: tokenId,
  role: 'viewer',
  sources: null,
  remoteAddress: null,
});

function createHouse() {
  const clock = { ms: 1_000 };
  const revoked = new Set<string>();
  const state = { isAway: false };
  const listeners = createListeners({
    isTokenValid: (id) =>
      state.isAway ? Promise.reject(new Error('away')) : Promise.resolve(!revoked.has(id)),
    now: () => clock.ms,
    log: createTestLog().log,
  });
  const admitReader = (tokenId: string) => {
    const live = listeners.admit(caller(tokenId));
    const read: string[] = [];
    live.stream.on('data', (chunk: Buffer) => read.push(chunk.toString()));
    return { live, read };
  };
  return { clock, revoked, state, listeners, admitReader };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

test('32 may listen, 8 with one token, and a place that is left is free again', async () => {
  const { listeners, admitReader } = createHouse();
  const held = Array.from({ length: 32 }, (_, n) => admitReader(`token ${n >> 3}`));

  expect(() => listeners.admit(caller('token 0'))).toThrow(expect.objectContaining({ status: 429 }));
  expect(() => listeners.admit(caller('token 9'))).toThrow(expect.objectContaining({ status: 503 }));
  held[0]?.live.stream.destroy();
  await settle();
  expect(admitReader('token 9').live.stream.destroyed).toBe(false);
  expect(() => listeners.admit(caller('token 0'))).toThrow(
    expect.objectContaining({ code: 'too_many_listeners' }),
  );
  listeners.end();
});

test('a heartbeat comes every 15 seconds', async () => {
  const { clock, listeners, admitReader } = createHouse();
  const { read } = admitReader('a');
  await settle();

  for (let seconds = 0; seconds < 60; seconds += 5) {
    clock.ms += 5_000;
    await listeners.runOnce();
  }
  await settle();

  expect(read).toEqual(Array.from({ length: 4 }, () => ': still here\n\n'));
  listeners.end();
});

test('whoever reads nothing for a minute while something waits is cut', async () => {
  const { clock, listeners } = createHouse();
  const live = listeners.admit(caller('a'));
  for (let n = 0; n < 20; n++) live.send({ text: 'x'.repeat(1_024), at: '' });

  clock.ms += 59_000;
  await listeners.runOnce();
  expect(live.stream.destroyed).toBe(false);
  clock.ms += 1_000;
  await listeners.runOnce();
  expect(live.stream.destroyed).toBe(true);
});

test('a token that no longer holds ends its listener within a minute, and one that cannot be looked up does not', async () => {
  const { clock, revoked, state, listeners, admitReader } = createHouse();
  const kept = admitReader('kept');
  const lost = admitReader('lost');
  await settle();
  revoked.add('lost');

  state.isAway = true;
  clock.ms += 60_000;
  await listeners.runOnce();
  await settle();
  expect(lost.live.stream.readableEnded).toBe(false);

  state.isAway = false;
  clock.ms += 60_000;
  await listeners.runOnce();
  await settle();
  expect(lost.live.stream.readableEnded).toBe(true);
  expect(kept.live.stream.readableEnded).toBe(false);
  listeners.end();
});

test('the end ends all and admits nobody', async () => {
  const { listeners, admitReader } = createHouse();
  const { live } = admitReader('a');
  await settle();

  listeners.end();
  await settle();

  expect(live.stream.readableEnded).toBe(true);
  expect(() => listeners.admit(caller('b'))).toThrow(expect.objectContaining({ status: 503 }));
});

test('a listener of the console ends within a minute of its session, and another one of the token stays', async () => {
  let nowMs = 1_000;
  const listeners = createListeners({
    isTokenValid: (_token, session) => Promise.resolve(session !== 'ended'),
    now: () => nowMs,
    log: createTestLog().log,
  });
  const [ended, open] = ['ended', 'open'].map((sessionId) => {
    const { stream } = listeners.admit({ ...caller('token'), sessionId });
    return stream.resume();
  });
  nowMs += 60_000;
  await listeners.runOnce();
  await settle();
  expect([ended?.destroyed, open?.destroyed]).toEqual([true, false]);
  listeners.end();
});
