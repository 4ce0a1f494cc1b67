// Finds a Python with pika for the test of the Python example, or installs Debian's if it can.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { explain } from '../output.ts';
import { installPackages, mayInstall, pathFolders } from './debian.ts';
import type { Guard } from './guard.ts';

/** The only one that sees Debian's packages. Another one may stand before it on the PATH. */
const DEBIANS = '/usr/bin/python3';
/** Long, since the machine is busy with the other checks. */
const TRIAL_TIMEOUT_MS = 20_000;

/** Printed at the end of a run without the test, where it is not overlooked. */
export const WITHOUT_PYTHON = `The test of examples/python did not run, since there is no Python with pika here: install it \
(Debian: sudo apt-get install python3-pika), or name another by TEST_PYTHON=/path/to/python3.`;

/**
 * The path of a Python that has pika: the one that TEST_PYTHON names, or else Debian's or one on the PATH. If there is none and we have the
 * rights, Debian's package is installed. Undefined without one.
 */
export async function findPython(options: {
  guard: Guard;
  logFile: string;
  log: (line: string) => void;
}): Promise<string | undefined> {
  const named = process.env['TEST_PYTHON'];
  if (named) return hasPika(named) ? named : undefined;
  const found = onPath();
  if (found !== undefined || !mayInstall()) return found;
  options.log('pika is missing: installing Debian’s python3-pika with apt-get (once; some seconds)');
  try {
    await installPackages(['python3-pika'], options);
  } catch (error) {
    options.log(explain(error));
  }
  return onPath();
}

function onPath(): string | undefined {
  return [DEBIANS, ...pathFolders().map((folder) => join(folder, 'python3'))].find(hasPika);
}

function hasPika(program: string): boolean {
  const trial = ['-c', 'import pika.adapters.blocking_connection, sqlite3'];
  return spawnSync(program, trial, { stdio: 'ignore', timeout: TRIAL_TIMEOUT_MS }).status === 0;
}
