// Finds a Chromium for the tests of pages, or installs Debian's if it can.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { explain } from '../output.ts';
import { installPackages, mayInstall, pathFolders } from './debian.ts';
import type { Guard } from './guard.ts';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];
/** Long, since the machine is busy with the other checks. */
const TRIAL_TIMEOUT_MS = 20_000;

/** Printed at the end of a run without browser tests, where it is not overlooked. */
export const WITHOUT_CHROMIUM = `The browser tests did not run, since there is no Chromium that works here: install it \
(Debian: sudo apt-get install chromium), or name another by TEST_CHROMIUM=/path/to/chrome.`;

/**
 * The path of a Chromium that runs here: the one that TEST_CHROMIUM names, or else one on the PATH. If there is none and we have
 * the rights, Debian's package is installed. Undefined without one.
 */
export async function findChromium(options: {
  guard: Guard;
  logFile: string;
  log: (line: string) => void;
}): Promise<string | undefined> {
  const named = process.env['TEST_CHROMIUM'];
  if (named) return works(named) ? named : undefined;
  const found = onPath();
  if (found !== undefined || !mayInstall()) return found;
  options.log('Chromium is missing: installing Debian’s package with apt-get (once; a minute or so)');
  try {
    await installPackages(['chromium'], options);
  } catch (error) {
    options.log(explain(error));
  }
  return onPath();
}

function onPath(): string | undefined {
  const candidates = NAMES.flatMap((name) => pathFolders().map((folder) => join(folder, name)));
  return candidates.find(works);
}

/** By starting it: what has the name may be a script that says how to install it, or lack a library. */
function works(program: string): boolean {
  const { status } = spawnSync(program, ['--version'], { stdio: 'ignore', timeout: TRIAL_TIMEOUT_MS });
  return status === 0;
}
