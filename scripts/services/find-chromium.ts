// Finds a Chromium for the tests of pages, or installs Debian's if it can.

import { spawnSync } from 'node:child_process';
import { findProgram, type Search, TRIAL_TIMEOUT_MS } from './find-program.ts';
import { onPath } from './debian.ts';

/** Printed at the end of a run without browser tests, where it is not overlooked. */
export const WITHOUT_CHROMIUM = `The browser tests did not run, since there is no Chromium that works here: install it \
(Debian: sudo apt-get install chromium), or name another by TEST_CHROMIUM=/path/to/chrome.`;

/** The one that TEST_CHROMIUM names, or else one on the PATH, or else Debian's. */
export const findChromium = (options: Parameters<typeof findProgram>[1]) => findProgram(CHROMIUM, options);

const CHROMIUM: Search = {
  variable: 'TEST_CHROMIUM',
  candidates: () => ['chromium', 'chromium-browser', 'google-chrome'].flatMap(onPath),
  // By starting it: what has the name may be a script that says how to install it, or lack a library.
  works: (program) =>
    spawnSync(program, ['--version'], { stdio: 'ignore', timeout: TRIAL_TIMEOUT_MS }).status === 0,
  packages: ['chromium'],
  news: 'Chromium is missing: installing Debian’s package with apt-get (once; a minute or so)',
};
