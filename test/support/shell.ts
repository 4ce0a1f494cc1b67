// Runs a line as an operator pastes it into a shell: `tallyhook …` and `curl …`.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { MAIN } from '../../scripts/program.ts';
import { INHERITED, NO_LOCAL_RUN } from './replica.ts';

const run = promisify(execFile);

const PRELUDE = `set -euo pipefail
tallyhook() { "$NODE" "$MAIN" "$@"; }
curl() { command curl -sS --fail-with-body "$@"; }
`;

/** @returns what it printed. @throws Error if it fails */
export async function paste(
  line: string,
  { operators, token, folder }: { operators: string; token: string; folder: string },
): Promise<string> {
  const env = {
    ...INHERITED,
    ...NO_LOCAL_RUN,
    NODE: process.execPath,
    MAIN,
    TALLYHOOK_URL: operators,
    TALLYHOOK_TOKEN: token,
  };
  const { stdout } = await run('bash', ['-c', `${PRELUDE}${line}`], { env, cwd: folder });
  return stdout;
}
