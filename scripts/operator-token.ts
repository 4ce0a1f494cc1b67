// The local run's own token for the operators' API. It is created once, directly in the database, as any first token is, and
// is used again for as long as it is valid.

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { createOperatorsClient } from '../src/operators/client/index.ts';
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

/** An address of the console that signs in once, with the rights of the token; the console's own if no code can be had now. */
export async function signInAddress({ url, token }: { url: string; token: string }): Promise<string> {
  const client = createOperatorsClient({ url, token });
  try {
    const { code } = await client.signInCode(randomUUID());
    if (code !== undefined) return `${url}/console/sign-in?code=${code}`;
  } catch {
    // A start does not fail for it: the token signs in, too.
  }
  return `${url}/console`;
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
