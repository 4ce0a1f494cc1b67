import { expect, test } from 'vitest';
import { createHandOff } from '../../../src/relay/hand-off.ts';
import { eventRecord } from '../../support/records.ts';
import { completed } from '../../support/sender.ts';

const fail = (error: Error) => async () => {
  throw error;
};
const refusal = (code: string) => Object.assign(new Error('refused'), { code });

test('a write that the server has refused is known to be undone: no load has to look for it', async () => {
  const handOff = createHandOff();
  const { writer } = handOff.next();
  // A deadlock, a conflict, its time-outs, no partition, a value, a limit.
  for (const code of ['40P01', '40001', '57014', '55P03', '23514', '22021', '54000']) {
    await expect(handOff.write([], fail(refusal(code)))).rejects.toThrow('refused');
  }
  expect(handOff.unknown()).toBe(0);
  expect(handOff.next().writer).toBe(writer);

  await expect(handOff.write([], fail(new Error('the connection is lost')))).rejects.toThrow('lost');
  expect(handOff.unknown()).toBe(1);
  expect(handOff.next().writer).not.toBe(writer);
});

test('it knows how many deliveries are in writes without an answer', async () => {
  const handOff = createHandOff();
  const deliveries = [eventRecord(completed('a')), eventRecord(completed('b'))];
  const { promise, reject } = Promise.withResolvers<never>();
  const written: number[] = [];
  handOff.onWritten(() => written.push(handOff.writing()));
  const first = handOff.write(deliveries, () => promise);
  const second = handOff.write(deliveries.slice(1), async () => []);
  expect(handOff.writing()).toBe(3);

  await second;
  reject(new Error('the connection is lost'));
  await expect(first).rejects.toThrow('lost');

  expect([...written, handOff.writing()]).toEqual([2, 0]);
});

test('a write that fails is told, since results may have waited for its events', async () => {
  const handOff = createHandOff();
  const writing: number[] = [];
  handOff.onFailed(() => writing.push(handOff.writing()));
  await expect(handOff.write([eventRecord(completed('a'))], fail(refusal('40P01')))).rejects.toThrow(
    'refused',
  );

  expect(writing).toEqual([0]);
});
