// The shortest run: two of the three processes that can die, each killed in the midst of its work. test/fault kills the third.

import { expect, test } from 'vitest';
import { KEPT, runFaults, TORTURE_LIMIT } from './kept.ts';

test('every promise is kept while Postgres and the leader are killed (seed 3)', TORTURE_LIMIT, async () => {
  expect(await runFaults(3, ['postgres-kill', 'hand-off-kill'])).toEqual(KEPT);
});
