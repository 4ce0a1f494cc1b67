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

/** @param main another program than this one. @returns what it printed. @throws Error if it fails */
export async function paste(
  line: string,
  options: {
    operators: string;
    token: string;
    folder: string;
    main?: string;
    env?: Readonly<Record<string, string>>;
  },
): Promise<string> {
  const { operators, token, folder, main = MAIN } = options;
  const env = {
    ...INHERITED,
    ...NO_LOCAL_RUN,
    NODE: process.execPath,
    MAIN: main,
    TALLYHOOK_URL: operators,
    TALLYHOOK_TOKEN: token,
    ...options.env,
  };
  const { stdout } = await run('bash', ['-c', `${PRELUDE}${line}`], { env, cwd: folder });
  return stdout;
}
