// Runs a program to its end and gives what it printed.

import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Guard } from '../services/guard.ts';

/** @returns its standard output. @throws Error with all that it printed, if it fails */
export type Run = (command: string, args: readonly string[], cwd: string) => Promise<string>;

/** Standard output goes to a file of its own, so that no notice of npm's is mixed with it. */
const APART = 'out=$1; shift; exec "$@" >"$out"';

export function createRun(guard: Guard, folder: string): Run {
  let runs = 0;
  return async (command, args, cwd) => {
    runs += 1;
    const out = join(folder, `${runs}.out`);
    const notices = join(folder, `${runs}.log`);
    const output = openSync(notices, 'w');
    const program = guard.spawn('/bin/sh', ['-c', APART, 'sh', out, command, ...args], {
      cwd,
      env: process.env,
      ending: { signal: 'SIGTERM', graceMs: 5_000 },
      output,
    });
    closeSync(output);
    const { code } = await program.exited;
    const printed = readFileSync(out, 'utf8');
    if (code === 0) return printed;
    const all = `${readFileSync(notices, 'utf8')}${printed}`.trim();
    throw new Error(`${[command, ...args].join(' ')} failed (exit code ${code}):\n${all}`);
  };
}
