// Runs leftovers.ts in a process of its own, which V8 treats as it treats the service.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { collectorFlags } from '../../src/cli/collector.ts';

const run = promisify(execFile);
const script = new URL('leftovers.ts', import.meta.url).pathname;

/** @returns how many bytes of each item became old */
export async function runLeftovers(
  part: string,
  env: Readonly<Record<string, string>> = {},
): Promise<number> {
  const args = ['--expose-gc', ...collectorFlags(), script, part];
  const { stdout } = await run(process.execPath, args, { env: { ...process.env, ...env } });
  return Number(stdout);
}
