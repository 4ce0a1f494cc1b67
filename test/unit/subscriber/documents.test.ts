import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { postgresDedup } from '../../../src/subscriber/index.ts';

const page = readFileSync(new URL('../../../docs/subscribers.md', import.meta.url), 'utf8');

test('the page shows the statements that prepare runs', () => {
  const { schema } = postgresDedup({ pool: { connect: () => Promise.reject(new Error('no database')) } });
  expect(page).toContain(schema.trim());
});
