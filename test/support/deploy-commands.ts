// Runs the commands under a heading of docs/deploy.md as they stand there, in the folder of the repository.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { MAIN } from '../../scripts/program.ts';
import { commandsUnder } from './deploy-page.ts';
import { patience } from './patience.ts';
import { INHERITED } from './replica.ts';

/** The command of the package. */
const PRELUDE = 'tallyhook() { "$NODE" "$MAIN" "$@"; }\n';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** `env`: what the page has its reader set. @returns what they print. @throws Error if one of them fails */
export async function runCommandsUnder(
  heading: string,
  env: Readonly<Record<string, string>>,
): Promise<string> {
  const { stdout } = await promisify(execFile)(
    'sh',
    ['-euc', `${PRELUDE}${commandsUnder(heading).join('\n')}`],
    {
      cwd: ROOT,
      env: { ...INHERITED, NODE: process.execPath, MAIN, ...env },
      timeout: patience(150_000), // of ten calls of rabbitmqctl
    },
  );
  return stdout;
}
