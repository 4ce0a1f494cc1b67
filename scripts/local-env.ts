// Reads and writes `.local/env`: the settings of a local run as KEY=value lines for a shell, for the other commands and the
// next run.

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { parseEnv } from 'node:util';

const LOCAL_VARIABLES = [
  'PORT',
  'OPERATOR_PORT',
  'DATABASE_URL',
  'AMQP_URL',
  'SIGNING_SECRETS',
  'ENVIRONMENT',
  'TALLYHOOK_URL',
  'TALLYHOOK_TOKEN',
] as const;

export type LocalEnv = Record<(typeof LOCAL_VARIABLES)[number], string>;

/** Empty if there is none. */
export function readLocalEnv(path: string): Partial<LocalEnv> {
  try {
    return parseEnv(readFileSync(path, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
}

/** Written in one step, and readable by its owner alone, since it contains secrets. */
export function writeLocalEnv(path: string, env: LocalEnv): void {
  const lines = LOCAL_VARIABLES.map((name) => `${name}=${quoted(env[name])}\n`);
  writeFileSync(`${path}.new`, lines.join(''), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

function quoted(value: string): string {
  return /^[\w@%+=:,./-]*$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
}

/** A variable of the caller's environment, or the content of the file that `<name>_FILE` names. Undefined if it is empty. */
export function given(name: string, env: NodeJS.ProcessEnv = process.env): string | undefined {
  const file = env[`${name}_FILE`];
  return env[name] || (file ? readFileSync(file, 'utf8').trim() : '') || undefined;
}
