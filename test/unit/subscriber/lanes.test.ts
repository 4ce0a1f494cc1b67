import { expect, test } from 'vitest';
import { createLanes } from '../../../src/subscriber/lanes.ts';

type Item = { readonly name: string; readonly end: () => void; readonly ended: Promise<void> };

function world(concurrency: number) {
  const begun: string[] = [];
  const items = new Map<string, Item>();
  const lanes = createLanes<Item>({
    concurrency,
    run: async (item) => {
      begun.push(item.name);
      await item.ended;
    },
  });
  const push = (lane: string, name: string) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    items.set(name, { name, end: resolve, ended: promise });
    lanes.push(lane, items.get(name) as Item);
  };
  /** Ends an item, and lets what follows from it happen. */
  const end = async (name: string) => {
    items.get(name)?.end();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { begun, lanes, push, end };
}

test('a lane runs one item at a time, in order; lanes run at once, up to the limit', async () => {
  const { begun, lanes, push, end } = world(2);
  for (const [lane, name] of [
    ['a', 'a1'],
    ['a', 'a2'],
    ['b', 'b1'],
    ['c', 'c1'],
  ] as const)
    push(lane, name);

  expect(begun).toEqual(['a1', 'b1']);
  expect(lanes.counts()).toEqual({ running: 2, waiting: 2 });
  await end('a1');
  expect(begun).toEqual(['a1', 'b1', 'c1']); // a has had its turn
  await end('b1');
  expect(begun).toEqual(['a1', 'b1', 'c1', 'a2']);
});

test('dropped items do not run, and a lane that is filled again still runs one at a time', async () => {
  const { begun, lanes, push, end } = world(3);
  push('a', 'a1');
  push('a', 'a2');
  push('b', 'b1');

  expect(lanes.dropWaiting(({ name }) => name === 'a2')).toBe(1);
  push('a', 'a3');
  push('a', 'a4');
  expect(begun).toEqual(['a1', 'b1']);
  await end('a1');
  expect(begun).toEqual(['a1', 'b1', 'a3']);
  await end('a3');
  expect(begun).toEqual(['a1', 'b1', 'a3', 'a4']);
});

test('a lane whose items were dropped before its turn, and that was filled again, has one turn', async () => {
  const { begun, lanes, push, end } = world(1);
  push('b', 'b1');
  push('a', 'a1');
  lanes.dropWaiting(({ name }) => name === 'a1');
  push('a', 'a2');
  push('a', 'a3');
  await end('b1');
  expect(begun).toEqual(['b1', 'a2']);
  await end('a2');
  expect(begun).toEqual(['b1', 'a2', 'a3']);
});

test('closed lanes begin nothing more, and are idle when what runs has ended', async () => {
  const { begun, lanes, push, end } = world(1);
  push('a', 'a1');
  push('a', 'a2');
  let isIdle = false;

  expect(lanes.close()).toBe(1);
  const idle = lanes.idle().then(() => (isIdle = true));
  push('b', 'b1');
  await new Promise((resolve) => setImmediate(resolve));
  expect(isIdle).toBe(false);
  await end('a1');
  await idle;

  expect(begun).toEqual(['a1']);
  expect(lanes.counts()).toEqual({ running: 0, waiting: 0 });
});

test('an item that rests leaves its place to other lanes, and its own lane waits for it', async () => {
  const begun: string[] = [];
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const lanes = createLanes<string>({
    concurrency: 1,
    run: async (name, rest) => {
      begun.push(name);
      if (name === 'a1') await rest(first.promise);
      if (name === 'b1') await second.promise;
      begun.push(`${name} ends`);
    },
  });
  for (const name of ['a1', 'a2', 'b1']) lanes.push(name.slice(0, 1), name);
  expect(begun).toEqual(['a1', 'b1']);

  first.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  expect(begun).toEqual(['a1', 'b1']); // b1 has the only place
  second.resolve();
  await lanes.idle();
  expect(begun).toEqual(['a1', 'b1', 'b1 ends', 'a1 ends', 'a2', 'a2 ends']);
});
