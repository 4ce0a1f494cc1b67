// What a statement was given must not be kept by the garbage collector (docs/decisions/2026-11-23-short-lives.md).

import { expect, test } from 'vitest';
import { createTestDatabase } from '../../support/database.ts';
import { HELD_BYTES, STATEMENTS_PART } from '../../support/leftovers.ts';
import { runLeftovers } from '../../support/run-leftovers.ts';

test('the values of a statement leave the young generation with it', async () => {
  await using database = await createTestDatabase({ empty: true });
  const bytes = await runLeftovers(STATEMENTS_PART, { DATABASE_URL: database.url });
  expect(bytes).toBeLessThan(HELD_BYTES / 4);
});
