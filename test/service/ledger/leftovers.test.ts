// What a statement was given must not be kept by the garbage collector (docs/decisions/2026-11-23-short-lives.md).

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { ALL_IS_SHORT_LIVED } from '../../../src/cli/serve.ts';
import { createTestDatabase } from '../../support/database.ts';
import { HELD_BYTES, STATEMENTS_PART } from '../../support/leftovers.ts';

const run = promisify(execFile);
const script = new URL('../../support/leftovers.ts', import.meta.url).pathname;

test('the values of a statement leave the young generation with it', async () => {
  await using database = await createTestDatabase({ empty: true });
  const { stdout } = await run(
    process.execPath,
    ['--expose-gc', ALL_IS_SHORT_LIVED, script, STATEMENTS_PART],
    { env: { ...process.env, DATABASE_URL: database.url } },
  );
  expect(Number(stdout)).toBeLessThan(HELD_BYTES / 4);
});
