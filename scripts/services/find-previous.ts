// Finds the version before, beside which a test of upgrades runs the present one: a commit of this repository.

import { spawnSync } from 'node:child_process';
import { ROOT } from '../relay.ts';

/** After each release: the commit of its tag. Before the first one: where the work on upgrades began. */
const PREVIOUS = 'd2d9d4501a82c4b5ae1b5a2bbefbaf3096553003';

export const WITHOUT_PREVIOUS = `The test of upgrades did not run, since the version before is not in this clone: fetch it \
(git fetch --unshallow), or name another commit by TEST_PREVIOUS.`;

/** The one that TEST_PREVIOUS names, or PREVIOUS. Nothing is fetched. */
export async function findPrevious(): Promise<string | undefined> {
  const commit = process.env['TEST_PREVIOUS'] ?? PREVIOUS;
  const { status } = spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`], {
    cwd: ROOT,
    stdio: 'ignore',
  });
  return status === 0 ? commit : undefined;
}
