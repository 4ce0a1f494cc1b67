import { expect, test } from 'vitest';
import { createConnectGate } from '../../../src/ledger/sessions/connect-gate.ts';

const MAX_PAUSE_MS = 1_000;
const REFUSED = new Error('refused');

/** On a clock that stands still but for the gate's own pauses. */
function createGate() {
  let atMs = 0;
  const sleep = async (ms: number) => void (atMs += ms);
  const gate = createConnectGate({ maxPauseMs: MAX_PAUSE_MS, now: () => atMs, sleep });
  /** How long an attempt waits for its turn; then it fails or succeeds. */
  const pauseBefore = async (failure?: Error) => {
    const beganMs = atMs;
    const leave = await gate.enter(() => false);
    leave?.(failure);
    return atMs - beganMs;
  };
  return { enter: gate.enter, pauseBefore };
}

test('attempts that fail have growing pauses between them, up to a limit, and none after a success', async () => {
  const { pauseBefore } = createGate();
  const pauses: number[] = [];
  for (let nth = 0; nth < 8; nth++) pauses.push(await pauseBefore(REFUSED));
  expect(pauses).toEqual([0, 50, 100, 200, 400, 800, MAX_PAUSE_MS, MAX_PAUSE_MS]);

  expect(await pauseBefore()).toBe(MAX_PAUSE_MS);
  expect(await pauseBefore(REFUSED)).toBe(0);
  expect(await pauseBefore()).toBe(50);
});

test('one attempt at a time is under way, and those that waited for one that failed fail with it', async () => {
  const { enter, pauseBefore } = createGate();
  const first = await enter(() => false);
  let begun = 0;
  const behind = [1, 2].map(() => enter(() => false).then(() => (begun += 1)));
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  expect(begun).toBe(0);

  first?.(REFUSED);

  const rejected = { status: 'rejected', reason: REFUSED };
  expect(await Promise.allSettled(behind)).toEqual([rejected, rejected]);
  expect(await pauseBefore()).toBe(50);
});

test('the one behind an attempt that succeeds begins at once, unless nobody waits for it any more', async () => {
  const { enter } = createGate();
  const first = await enter(() => false);
  const [given, next] = [enter(() => true), enter(() => false)];

  first?.();

  expect(await given).toBeUndefined();
  expect(await next).toBeTypeOf('function');
});
