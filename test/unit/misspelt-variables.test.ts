import { expect, test } from 'vitest';
import { misspeltVariables } from '../../src/config.ts';

test('a variable that looks like one of ours is named with it, and its value is not', () => {
  const env = { SIGNING_SECRET: 'a', AMQP_EXCHANGES: 'b', DATABSE_URL: 'c', AMPQ_URL: 'd', log_level: 'e' };
  expect(misspeltVariables(env).map((sentence) => sentence.match(/[A-Z_]{8,}/gi)?.at(-1))).toEqual([
    'SIGNING_SECRETS',
    'AMQP_EXCHANGE',
    'DATABASE_URL',
    'AMQP_URL',
    'LOG_LEVEL',
  ]);
});

test('other variables are none of our business, nor is one beside the right one', () => {
  expect(misspeltVariables({ PATH: '', HOME: '', POST: '', HOSTNAME: '', TEST_DATABASE_URL: '' })).toEqual(
    [],
  );
  expect(misspeltVariables({ DATABASE_URI: 'a', DATABASE_URL: 'b' })).toEqual([]);
});
