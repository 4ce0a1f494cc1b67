// Finds a Python with pika for the test of the Python example, or installs Debian's if it can.

import { spawnSync } from 'node:child_process';
import { findProgram, type Search, TRIAL_TIMEOUT_MS } from './find-program.ts';
import { onPath } from './debian.ts';

/** Printed at the end of a run without the test, where it is not overlooked. */
export const WITHOUT_PYTHON = `The test of examples/python did not run, since there is no Python with pika here: install it \
(Debian: sudo apt-get install python3-pika), or name another by TEST_PYTHON=/path/to/python3.`;

/** The one that TEST_PYTHON names, or else Debian's, or one on the PATH that has pika. */
export const findPython = (options: Parameters<typeof findProgram>[1]) => findProgram(PYTHON, options);

const PYTHON: Search = {
  variable: 'TEST_PYTHON',
  // Only Debian's own sees Debian's packages. Another one may stand before it on the PATH.
  candidates: () => ['/usr/bin/python3', ...onPath('python3')],
  works: (program) => {
    const trial = ['-c', 'import pika.adapters.blocking_connection, sqlite3'];
    return spawnSync(program, trial, { stdio: 'ignore', timeout: TRIAL_TIMEOUT_MS }).status === 0;
  },
  packages: ['python3-pika'],
  news: 'pika is missing: installing Debian’s python3-pika with apt-get (once; some seconds)',
};
