// The local run's own token for the operators' API: made once, straight on the database, as anybody makes the first one,
// and used again for as long as it opens the API.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { MAIN } from './program.ts';

const CHECK_TIMEOUT_MS = 5_000;
const MAKE_TIMEOUT_MS = 15_000;

/** `env`: the relay's. @returns the value of a token that holds. @throws Error if none can be made */
export async function findOrMakeToken(options: {
  url: string;
  before: string | undefined;
  env: NodeJS.ProcessEnv;
}): Promise<string> {
  const { url, before, env } = options;
  if (before && (await holds(url, before))) return before;
  const args = ['tokens', 'create', '--name', 'npm start', '--role', 'admin'];
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args], {
    env,
    timeout: MAKE_TIMEOUT_MS,
  });
  const { value } = JSON.parse(stdout) as { value: string };
  return value;
}

/** Any answer but 401: a relay that is busy is no reason to make another token. */
async function holds(url: string, token: string): Promise<boolean> {
  const response = await fetch(`${url}/api/v1/openapi.json`, {
    headers: { Authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(CHECK_TIMEOUT_MS),
  });
  await response.arrayBuffer();
  return response.status !== 401;
}
