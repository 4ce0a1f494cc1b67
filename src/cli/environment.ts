// What commands that talk to a running relay know of it: the environment, and where that is silent the file
// `.local/env` that the local run leaves behind.

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import type { Env } from '../config.ts';

const LOCAL_ENV = fileURLToPath(new URL('../../.local/env', import.meta.url));

/** Variables from outside win, each for itself, over those of the local run. */
export function withLocalRun(env: Env): Env {
  if (!existsSync(LOCAL_ENV)) return env;
  const local = parseEnv(readFileSync(LOCAL_ENV, 'utf8'));
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value));
  // A secret from a file outside must not meet one from the local run: both set would be a fault.
  const replaced = Object.keys(local).filter((name) => given[`${name}_FILE`] !== undefined);
  return {
    ...Object.fromEntries(Object.entries(local).filter(([name]) => !replaced.includes(name))),
    ...given,
  };
}
