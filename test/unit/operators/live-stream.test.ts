import { finished } from 'node:stream/promises';
import { expect, test } from 'vitest';
import { createLiveStream, frameOf } from '../../../src/operators/live/stream.ts';

const at = (n: number) => `2026-01-01T00:00:00.${String(n).padStart(6, '0')}Z`;
/** About a kilobyte. */
const frame = (n: number) => ({
  text: frameOf('delivery', JSON.stringify({ n, filler: 'x'.repeat(960) }), String(n)),
  at: at(n),
});

type Read = {
  event: string | undefined;
  value: { n?: number; left_out?: number; since?: string; because?: string };
};

function parse(text: string): Read[] {
  return text
    .split('\n\n')
    .filter((block) => block.includes('data: '))
    .map((block) => ({
      event: /^event: (.*)$/m.exec(block)?.[1],
      value: JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? ''),
    }));
}

async function readRest(live: ReturnType<typeof createLiveStream>): Promise<Read[]> {
  let text = '';
  live.stream.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  await new Promise((resolve) => setImmediate(resolve));
  live.end();
  await finished(live.stream);
  return parse(text);
}

test('a reader that keeps up gets every frame in order and no gap', async () => {
  const live = createLiveStream({ now: () => 0, bufferedBytesMax: 64 * 1024 });
  let text = '';
  live.stream.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });

  for (let n = 0; n < 500; n++) {
    live.send(frame(n));
    if (n % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  live.end();
  await finished(live.stream);

  expect(parse(text).map(({ value }) => value.n)).toEqual(Array.from({ length: 500 }, (_, n) => n));
});

test('a reader that does not read holds a bounded number of bytes, loses the oldest and is told how many', async () => {
  const live = createLiveStream({ now: () => 0, bufferedBytesMax: 64 * 1024 });

  let most = 0;
  for (let n = 0; n < 5_000; n++) {
    live.send(frame(n));
    most = Math.max(most, live.bufferedBytes() + live.stream.readableLength);
  }

  expect(most).toBeLessThanOrEqual((64 + 16 + 1) * 1024);
  const read = await readRest(live);
  const gaps = read.filter(({ event }) => event === 'gap').map(({ value }) => value);
  const numbers = read.flatMap(({ value }) => value.n ?? []);
  expect(gaps).toHaveLength(1);
  expect(gaps[0]?.because).toBe('too_slow');
  expect(numbers.length + (gaps[0]?.left_out ?? 0)).toBe(5_000);
  expect(numbers.at(-1)).toBe(4_999);
  // The gap stands where they are missing, and begins with the first of them.
  const place = read.findIndex(({ event }) => event === 'gap');
  expect(gaps[0]?.since).toBe(at((read[place - 1]?.value.n ?? -1) + 1));
});

test('what has waited without being read is told in milliseconds, and nothing while nothing waits', () => {
  const clock = { ms: 0 };
  const live = createLiveStream({ now: () => clock.ms, bufferedBytesMax: 64 * 1024 });

  clock.ms = 100_000;
  expect(live.stalledMs()).toBe(0);
  for (let n = 0; n < 50; n++) live.send(frame(n)); // the first ones go to the stream itself
  clock.ms = 160_000;
  expect(live.stalledMs()).toBe(60_000);

  live.stream.resume();
  live.end();
});

test('the end is told to whoever has read all, and another is cut', async () => {
  const reader = createLiveStream({ now: () => 0 });
  reader.stream.resume();
  reader.send(frame(1));
  await new Promise((resolve) => setImmediate(resolve));
  reader.end();
  await finished(reader.stream);

  const sleeper = createLiveStream({ now: () => 0 });
  sleeper.send(frame(1));
  sleeper.stream.read(0);
  sleeper.send(frame(2));
  sleeper.end();
  await expect(finished(sleeper.stream)).rejects.toThrow(/Premature close/);
});
