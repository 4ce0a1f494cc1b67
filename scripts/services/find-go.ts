// Finds Go and the packages that the Go example imports, or installs Debian's if it can.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { explain } from '../output.ts';
import { installPackages, mayInstall, pathFolders } from './debian.ts';
import type { Guard } from './guard.ts';

const PACKAGES = ['golang-go', 'golang-github-rabbitmq-amqp091-go-dev', 'golang-github-lib-pq-dev'];
/** Where Debian has the sources of the libraries. */
const LIBRARIES = ['rabbitmq/amqp091-go', 'lib/pq'].map((name) => `/usr/share/gocode/src/github.com/${name}`);
/** Long, since the machine is busy with the other checks. */
const TRIAL_TIMEOUT_MS = 20_000;

/** Printed at the end of a run without the test, where it is not overlooked. */
export const WITHOUT_GO = `The test of examples/go did not run, since there is no Go with Debian's libraries here: install them \
(Debian: sudo apt-get install --no-install-recommends ${PACKAGES.join(' ')}).`;

/**
 * The path of a Go whose programs can be compiled here without a network: the one that TEST_GO names, or else one on the PATH.
 * What is missing is installed from Debian if we have the rights. Undefined without one.
 */
export async function findGo(options: {
  guard: Guard;
  logFile: string;
  log: (line: string) => void;
}): Promise<string | undefined> {
  const named = process.env['TEST_GO'];
  if (named) return canCompile(named) ? named : undefined;
  const found = onPath();
  if (found !== undefined || !mayInstall()) return found;
  options.log('Go is missing: installing Debian’s with apt-get (once; half a minute or so)');
  try {
    await installPackages(PACKAGES, options);
  } catch (error) {
    options.log(explain(error));
  }
  return onPath();
}

function onPath(): string | undefined {
  return pathFolders()
    .map((folder) => join(folder, 'go'))
    .find(canCompile);
}

function canCompile(program: string): boolean {
  const { status } = spawnSync(program, ['version'], { stdio: 'ignore', timeout: TRIAL_TIMEOUT_MS });
  return status === 0 && LIBRARIES.every((folder) => existsSync(folder));
}
