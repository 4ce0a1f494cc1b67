// Opens the operators' API for a command: with the address and token of the environment or of the local run.

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ConfigError } from '../../base/errors.ts';
import type { HttpClientOptions } from '../../base/net/http-client.ts';
import type { Env } from '../../config.ts';
import { inRepository, withLocalRun } from '../../terminal/environment.ts';
import type { Io } from '../../terminal/io.ts';
import { duration } from '../../terminal/readable.ts';
import { addressFault, createOperatorsClient, type OperatorsClient, tokenFault } from '../client/index.ts';

export type Api = {
  readonly client: OperatorsClient;
  /** Of the operators' port, as it was given. */
  readonly url: string;
  /** An Idempotency-Key for the next action. The keys of one run share their beginning, so that they are found together. */
  readonly nextKey: () => string;
};

const HOW_TO_GET_A_TOKEN = `make a token with "tallyhook tokens create" on a machine with DATABASE_URL\
${inRepository(', or start a local run with "npm start"')}`;

/** `onWait`: what is done instead of telling of it. @throws ConfigError */
export function openApi(
  env: Env,
  io: Io,
  {
    onWait = (waitMs, { message }) => io.complain(`${message}: trying again in ${duration(waitMs)}`),
  }: Pick<HttpClientOptions, 'onWait'> = {},
): Api {
  const { url, token } = readSettings(env);
  const runId = randomUUID();
  let actions = 0;
  return {
    url,
    client: createOperatorsClient({ url, token, onWait }),
    nextKey: () => `${runId}-${(actions += 1)}`,
  };
}

/** @throws ConfigError with the faults of both */
function readSettings(given: Env): { url: string; token: string } {
  const env = withLocalRun(given);
  const url = env['TALLYHOOK_URL'] || `http://127.0.0.1:${env['OPERATOR_PORT'] || 8081}`;
  // The local run's token must not be sent to another address.
  const tokenEnv = given['TALLYHOOK_URL'] ? given : env;
  const urlFault = addressFault(url);
  const faults = urlFault === undefined ? [] : [`TALLYHOOK_URL cannot be used: ${urlFault}`];
  const { token, fault } = readToken(tokenEnv, url);
  if (fault !== undefined) faults.push(fault);
  if (token === undefined || faults.length > 0) throw new ConfigError(faults);
  return { url, token };
}

function readToken(env: Env, url: string): { token?: string; fault?: string } {
  const file = env['TALLYHOOK_TOKEN_FILE'];
  let token = env['TALLYHOOK_TOKEN'];
  try {
    if (!token && file) token = readFileSync(file, 'utf8').trim();
  } catch (error) {
    return { fault: `TALLYHOOK_TOKEN_FILE cannot be read (${(error as NodeJS.ErrnoException).code})` };
  }
  if (!token) return { fault: `TALLYHOOK_TOKEN must be set for ${hostOf(url)}: ${HOW_TO_GET_A_TOKEN}` };
  const fault = tokenFault(token);
  return fault === undefined ? { token } : { fault: `TALLYHOOK_TOKEN cannot be used: ${fault}` };
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : 'TALLYHOOK_URL';
}
