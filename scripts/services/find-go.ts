// Finds Go and the packages that the Go example imports, or installs Debian's if it can.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { findProgram, type Search, TRIAL_TIMEOUT_MS } from './find-program.ts';
import { onPath } from './debian.ts';

const PACKAGES = ['golang-go', 'golang-github-rabbitmq-amqp091-go-dev', 'golang-github-lib-pq-dev'];
/** Where Debian has the sources of the libraries. */
const LIBRARIES = ['rabbitmq/amqp091-go', 'lib/pq'].map((name) => `/usr/share/gocode/src/github.com/${name}`);

/** Printed at the end of a run without the test, where it is not overlooked. */
export const WITHOUT_GO = `The test of examples/go did not run, since there is no Go with Debian's libraries here: install them \
(Debian: sudo apt-get install --no-install-recommends ${PACKAGES.join(' ')}).`;

/** The one that TEST_GO names, or else one on the PATH, if it can compile the example without a network. */
export const findGo = (options: Parameters<typeof findProgram>[1]) => findProgram(GO, options);

const GO: Search = {
  variable: 'TEST_GO',
  candidates: () => onPath('go'),
  works: (program) =>
    spawnSync(program, ['version'], { stdio: 'ignore', timeout: TRIAL_TIMEOUT_MS }).status === 0 &&
    LIBRARIES.every((folder) => existsSync(folder)),
  packages: PACKAGES,
  news: 'Go is missing: installing Debian’s with apt-get (once; half a minute or so)',
};
