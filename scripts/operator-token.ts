// The local run's own token for the operators' API. It is created once, directly in the database, as any first token is, and
// is used again for as long as it is valid.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { MAIN } from './program.ts';

const CHECK_TIMEOUT_MS = 5_000;
const CREATE_TIMEOUT_MS = 15_000;

/** @param options.env the relay's. @param options.name of a new one. @returns the value of a valid token. @throws Error if none can be created */
export async function findOrCreateToken(options: {
  url: string;
  before: string | undefined;
  env: NodeJS.ProcessEnv;
  name?: string;
}): Promise<string> {
  const { url, before, env, name = 'npm start' } = options;
  if (before && (await isValid(url, before))) return before;
  const args = ['tokens', 'create', '--name', name, '--role', 'admin'];
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args], {
    env,
    timeout: CREATE_TIMEOUT_MS,
  });
  const { value } = JSON.parse(stdout) as { value: string };
  return value;
}

/** True for any answer but 401: a busy relay is no reason to create another token. */
async function isValid(url: string, token: string): Promise<boolean> {
  const response = await fetch(`${url}/api/v1/openapi.json`, {
    headers: { Authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(CHECK_TIMEOUT_MS),
  });
  await response.arrayBuffer();
  return response.status !== 401;
}
