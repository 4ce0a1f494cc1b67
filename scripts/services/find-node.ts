// Finds a Node of the oldest version that package.json admits, for the tests of the package, or gets it from npm.

import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { explain } from '../output.ts';
import { lastLines } from './folders.ts';
import type { Guard } from './guard.ts';

const ROOT = join(import.meta.dirname, '../..');
const LOG_LINES = 6;

/** Printed at the end of a run without it, where it is not overlooked. */
export const WITHOUT_OLD_NODE = `The tests of the package under Node ${oldest()} did not run, since npm has none for this \
machine: name one by TEST_OLD_NODE=/path/to/node.`;

/** Of `engines` in package.json: `>=22.19.0`. */
function oldest(): string {
  const { engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    engines: { node: string };
  };
  return engines.node.replace('>=', '');
}

/**
 * The path of a Node of this version that runs here: the one that TEST_OLD_NODE names, or npm's, which is kept in `.local`.
 * Undefined without one.
 */
export async function findOldNode(options: {
  guard: Guard;
  logFile: string;
  log: (line: string) => void;
}): Promise<string | undefined> {
  const named = process.env['TEST_OLD_NODE'];
  if (named !== undefined) return works(named) ? named : undefined;
  const folder = join(ROOT, `.local/node-${oldest()}`);
  const name = `node-${process.platform}-${process.arch}`;
  const program = join(folder, 'node_modules', name, 'bin/node');
  if (!works(program)) {
    options.log(`getting Node ${oldest()} from npm, to test the package with (once; 50 MB)`);
    try {
      await install(`${name}@${oldest()}`, folder, options);
    } catch (error) {
      options.log(explain(error));
    }
  }
  return works(program) ? program : undefined;
}

/** In a folder of its own first: another run may do the same, and a run that ends early leaves no half of it. */
async function install(
  spec: string,
  folder: string,
  { guard, logFile }: { guard: Guard; logFile: string },
): Promise<void> {
  mkdirSync(join(ROOT, '.local'), { recursive: true });
  const fresh = mkdtempSync(`${folder}-`);
  guard.removeInTheEnd(fresh);
  const output = openSync(logFile, 'w', 0o600);
  const args = [
    'install',
    '--prefix',
    fresh,
    '--ignore-scripts',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
  ];
  const npm = guard.spawn('npm', [...args, spec], {
    cwd: fresh,
    env: process.env,
    ending: { signal: 'SIGTERM', graceMs: 5_000 },
    output,
  });
  closeSync(output);
  const { code } = await npm.exited;
  if (code !== 0) throw new Error(`npm could not install ${spec}:\n${lastLines(logFile, LOG_LINES)}`);
  rmSync(folder, { recursive: true, force: true });
  renameSync(fresh, folder);
}

/** By starting it: it may be for another C library. */
function works(program: string): boolean {
  const { status, stdout } = spawnSync(program, ['--version'], { encoding: 'utf8', timeout: 20_000 });
  return status === 0 && stdout.trim() === `v${oldest()}`;
}
