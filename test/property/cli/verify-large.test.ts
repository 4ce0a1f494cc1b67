import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { guessMistakes } from '../../../src/tools/verify/guesses.ts';

const SECRET = 'a-secret-of-enough-bytes-0001';

test('a body of many MiB is no error, and its end is still tried', () => {
  const body = Buffer.from(JSON.stringify({ text: 'x'.repeat(9 * 1024 * 1024) }));
  const guess = (signed: string) =>
    guessMistakes(createHmac('sha256', SECRET).update(body).update(signed).digest(), {
      secret: SECRET,
      raw: `${SECRET}\n`,
      body,
    });
  expect(guess('something else')).toBeUndefined();
  expect(guess('\n')).toHaveLength(1);
});
