import { expect, test } from 'vitest';
import { createHandOff } from '../../../src/relay/hand-off.ts';

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
