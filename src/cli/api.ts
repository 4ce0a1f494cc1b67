// How commands reach the operators' API: its address and token from the environment, or from the local run.

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Env } from '../config.ts';
import { ConfigError, UsageError } from '../errors.ts';
import {
  createOperatorsClient,
  type OperatorsClient,
  addressFault,
  tokenFault,
} from '../operators/client/index.ts';
import { parse } from './arguments.ts';
import type { Command, Verbs } from './command.ts';
import { withLocalRun } from './environment.ts';
import { complain } from './output.ts';
import { duration } from './readable.ts';

export type Api = {
  readonly client: OperatorsClient;
  /** A key for the next action. Those of one run share their beginning, so that they are found together. */
  readonly nextKey: () => string;
};

const HOW_TO_GET_ONE =
  'make a token with "tallyhook tokens create" where the database is, or start a local run with "npm start"';

/** @throws ConfigError */
export function openApi(env: Env): Api {
  const { url, token } = access(env);
  const runId = randomUUID();
  let actions = 0;
  return {
    client: createOperatorsClient({
      baseUrl: url,
      token,
      onWait: (waitMs, { message }) => complain(`${message}: trying again in ${duration(waitMs)}`),
    }),
    nextKey: () => `${runId}-${(actions += 1)}`,
  };
}

/** @throws ConfigError with the faults of both */
function access(given: Env): { url: string; token: string } {
  const env = withLocalRun(given);
  const url = env['TALLYHOOK_URL'] || `http://127.0.0.1:${env['OPERATOR_PORT'] || 8081}`;
  // The local run's token is for the local run: it must not go to whatever address was given.
  const from = given['TALLYHOOK_URL'] ? given : env;
  const urlFault = addressFault(url);
  const faults = urlFault === undefined ? [] : [`TALLYHOOK_URL cannot be used: ${urlFault}`];
  const { token, fault } = readToken(from, url);
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
  if (!token) return { fault: `TALLYHOOK_TOKEN must be set for ${hostOf(url)}: ${HOW_TO_GET_ONE}` };
  const unusable = tokenFault(token);
  return unusable === undefined ? { token } : { fault: `TALLYHOOK_TOKEN cannot be used: ${unusable}` };
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : 'TALLYHOOK_URL';
}

/** A noun with its verbs. Without a verb, or with an option first, it does `otherwise`. */
export function nounCommand(
  noun: string,
  { help, verbs, otherwise }: { help: string; verbs: Verbs; otherwise?: Command['run'] },
): Command {
  return {
    help,
    run: (args, env) => {
      const [first = '', ...rest] = args;
      const verb = Object.hasOwn(verbs, first) ? verbs[first] : undefined;
      if (verb !== undefined) return verb(rest, env);
      if (otherwise !== undefined && (first === '' || first.startsWith('-'))) return otherwise(args, env);
      if (first.startsWith('-')) parse(args, {}); // --help
      throw new UsageError(
        `${noun} takes ${Object.keys(verbs).join(', ')}${first === '' ? '' : `, not "${first}"`}`,
      );
    },
  };
}

/** The one word that a verb needs. @throws UsageError */
export function onlyWord(positionals: readonly string[], what: string): string {
  const [word, surplus] = positionals;
  if (word === undefined) throw new UsageError(`${what} is missing`);
  if (surplus !== undefined) throw new UsageError(`"${surplus}" means nothing here`);
  return word;
}
