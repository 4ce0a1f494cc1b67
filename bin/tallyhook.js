#!/usr/bin/env node
// The command `tallyhook`. Plain JavaScript for any Node from 16: one that is too old for the program gets a sentence and not a
// stack trace. The package has the program as src/main.js; the repository, which is run without a build, as src/main.ts.

import { existsSync } from 'node:fs';

const NEEDED = 24;
/** Of the exit codes in src/main.ts: a configuration that cannot be used. */
const CANNOT_RUN = 78;

const { node: running } = process.versions;
if (Number(running.split('.')[0]) < NEEDED) {
  process.stderr.write(
    `tallyhook needs Node ${NEEDED} or newer, and this is Node ${running} (${process.execPath}).\n`,
  );
  process.exitCode = CANNOT_RUN;
} else {
  const built = new URL('../src/main.js', import.meta.url);
  await import(existsSync(built) ? built.href : '../src/main.ts');
}
