// The environment of a command: its own variables, and for those that are not set the ones in `.local/env`, which the
// local run writes. TALLYHOOK_LOCAL_ENV names another file; if it is empty, none is read. Tests rely on that in a clone in which
// npm start has run.

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import type { Env } from '../config.ts';

const LOCAL_ENV = fileURLToPath(new URL('../../.local/env', import.meta.url));

/** Each variable of `env` takes precedence over that of the local run. */
export function withLocalRun(env: Env): Env {
  const file = env['TALLYHOOK_LOCAL_ENV'] ?? LOCAL_ENV;
  if (!existsSync(file)) return env;
  const local = parseEnv(readFileSync(file, 'utf8'));
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value));
  // X_FILE in `env` replaces X of the local run: with both set, the configuration would be invalid.
  const replaced = Object.keys(local).filter((name) => given[`${name}_FILE`] !== undefined);
  if (given['SIGNING_SECRETS'] !== undefined) replaced.push('SIGNING_SECRETS_FILE');
  // A SOURCES_FILE of another relay can have the source `default`, for which these would come first.
  if (given['SOURCES_FILE'] !== undefined && given['SOURCES_FILE'] !== local['SOURCES_FILE'])
    replaced.push('SIGNING_SECRETS', 'SIGNING_SECRETS_FILE');
  return {
    ...Object.fromEntries(Object.entries(local).filter(([name]) => !replaced.includes(name))),
    ...given,
  };
}

/** A text about `npm start`, which the repository has and the package has not: there it is `otherwise`. */
export function inRepository(text: string, otherwise = ''): string {
  return import.meta.url.endsWith('.ts') ? text : otherwise;
}

/** What to look at when nothing listens at the address of a local relay or broker. */
export const NOTHING_LISTENS = inRepository(
  'Is "npm start" running? If your shell has read an older .local/env, read it again: . ./.local/env',
  'Is it running? Environment variables say where it is looked for (docs/configuration.md).',
);
