// Finds spin, which checks the model of the relay, and the C compiler that it needs, or installs Debian's if it can.

import { spawnSync } from 'node:child_process';
import { findProgram, type Search, TRIAL_TIMEOUT_MS } from './find-program.ts';
import { onPath } from './debian.ts';

const PACKAGES = ['spin', 'gcc', 'libc6-dev'];

/** Printed at the end of a run without the test, where it is not overlooked. */
export const WITHOUT_SPIN = `The model of the relay was not checked, since there is no spin with gcc here: install them \
(Debian: sudo apt-get install --no-install-recommends ${PACKAGES.join(' ')}), or name another spin by TEST_SPIN=/path/to/spin.`;

/** The one that TEST_SPIN names, or else one on the PATH, if there is a gcc, too. */
export const findSpin = (options: Parameters<typeof findProgram>[1]) => findProgram(SPIN, options);

const runs = (program: string, argument: string) =>
  spawnSync(program, [argument], { stdio: 'ignore', timeout: TRIAL_TIMEOUT_MS }).status === 0;

const SPIN: Search = {
  variable: 'TEST_SPIN',
  candidates: () => onPath('spin'),
  works: (program) => runs(program, '-V') && runs('gcc', '--version'),
  packages: PACKAGES,
  news: 'spin is missing: installing Debian’s spin and gcc with apt-get (once; half a minute or so)',
};
