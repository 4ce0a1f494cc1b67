import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { postgresDedup } from '../../../src/subscriber/index.ts';
import { optionsForm } from '../../../src/subscriber/settings.ts';

const page = readFileSync(new URL('../../../docs/subscribers.md', import.meta.url), 'utf8');

/** The rows of the table of options: which they are, and their defaults. */
const [, table = ''] = /^\| option \| default \| \|\n(.*?)\n\n/ms.exec(page) ?? [];
const rows = table
  .split('\n')
  .slice(1)
  .map((row) => row.split('|').map((cell) => cell.trim()));
const quoted = (text = '') => Array.from(text.matchAll(/`([^`]+)`/g), ([, name = '']) => name);

test('the page shows the statements that prepare runs', () => {
  const { schema } = postgresDedup({ pool: { connect: () => Promise.reject(new Error('no database')) } });
  expect(page).toContain(schema.trim());
});

test('the page names each option, and those of backoff with their defaults', () => {
  const names = rows.flatMap(([, first]) => quoted(first));
  const { backoff } = optionsForm.shape;
  const nested = backoff.unwrap();
  const ofBackoff = Object.keys(nested.shape).map((name) => `backoff.${name}`);
  const options = Object.keys(optionsForm.shape).flatMap((name) => (name === 'backoff' ? ofBackoff : [name]));
  expect(names.toSorted()).toEqual(options.toSorted());

  const { backoff: defaults } = optionsForm.parse({ url: 'amqp://127.0.0.1', queue: 'a', on: {} });
  for (const [name, ms] of Object.entries(defaults)) {
    const row = rows.find(([, first]) => quoted(first).includes(`backoff.${name}`));
    expect({ name, default: row?.[2] }).toEqual({ name, default: ms.toLocaleString('en') });
  }
});
