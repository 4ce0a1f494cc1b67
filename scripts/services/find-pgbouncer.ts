// Finds a PgBouncer for the tests of poolers, or installs Debian's if it can.

import { spawnSync } from 'node:child_process';
import { findProgram, type Search, TRIAL_TIMEOUT_MS } from './find-program.ts';
import { onPath } from './debian.ts';

/** Printed at the end of a run without the tests, where it is not overlooked. */
export const WITHOUT_PGBOUNCER = `The tests of PgBouncer did not run, since there is none here: install it \
(Debian: sudo apt-get install pgbouncer), or name another by TEST_PGBOUNCER=/path/to/pgbouncer.`;

/** The one that TEST_PGBOUNCER names, or else Debian's, or one on the PATH. */
export const findPgbouncer = (options: Parameters<typeof findProgram>[1]) => findProgram(PGBOUNCER, options);

const PGBOUNCER: Search = {
  variable: 'TEST_PGBOUNCER',
  candidates: () => ['/usr/sbin/pgbouncer', ...onPath('pgbouncer')],
  works: (program) =>
    spawnSync(program, ['--version'], { stdio: 'ignore', timeout: TRIAL_TIMEOUT_MS }).status === 0,
  packages: ['pgbouncer'],
  news: 'PgBouncer is missing: installing Debian’s pgbouncer with apt-get (once; some seconds)',
};
