// Reads and writes `.local/env`: the settings of a local run, for the other commands, the next run, and a shell. After
// `. ./.local/env` they are in the environment of all that this shell starts.

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { parseEnv } from 'node:util';

const LOCAL_VARIABLES = [
  'PORT',
  'OPERATOR_PORT',
  'DATABASE_URL',
  'AMQP_URL',
  'SIGNING_SECRETS',
  'SIGNING_SECRETS_FILE',
  // The first secret of the source `default`, for a webhook that is signed by hand.
  'SIGNING_SECRET',
  'SOURCES_FILE',
  'ENVIRONMENT',
  'TALLYHOOK_URL',
  'TALLYHOOK_TOKEN',
] as const;

export type LocalEnv = Record<(typeof LOCAL_VARIABLES)[number], string>;

/** In the file, names the variables that are not from the caller's environment. Not exported. */
const CHOSEN = 'NPM_START_CHOSE';

/** Empty if there is none. */
export function readLocalEnv(path: string): Partial<LocalEnv> {
  return read(path);
}

/** Written in one step, and readable by its owner alone, since it contains secrets. Variables that are empty are left out. */
export function writeLocalEnv(path: string, env: LocalEnv): void {
  const names = LOCAL_VARIABLES.filter((name) => env[name] !== '');
  // What came from the file that `<name>_FILE` names is not in the caller's environment either.
  const chosen = names.filter((name) => !process.env[name]);
  const text = [
    '# Written by npm start at each start. ". ./.local/env" puts it into the environment of a shell.',
    ...names.map((name) => `export ${name}=${quoted(env[name])}`),
    `${CHOSEN}=${quoted(chosen.join(' '))}`,
    '',
  ].join('\n');
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** In a form that a shell and `parseEnv` read alike. Only a value with both kinds of quotes has none: then the shell's. */
function quoted(value: string): string {
  if (/^[\w@%+=:,./-]*$/.test(value)) return value;
  if (value.includes("'") && !/["$`\\]/.test(value)) return `"${value}"`;
  return `'${value.replaceAll("'", `'\\''`)}'`;
}

/**
 * Removes from our environment what `. ./.local/env` put there. The caller did not give it: an earlier `npm start` chose it,
 * and the servers that it names may not run now.
 */
export function forgetLocalRun(path: string): void {
  const { [CHOSEN]: chosen = '', ...local } = read(path) as Partial<Record<string, string>>;
  for (const name of chosen.split(' ')) {
    if (process.env[name] === local[name]) delete process.env[name];
  }
}

/** A variable of the caller's environment, or the content of the file that `<name>_FILE` names. Undefined if it is empty. */
export function given(name: string, env: NodeJS.ProcessEnv = process.env): string | undefined {
  const file = env[`${name}_FILE`];
  return env[name] || (file ? readFileSync(file, 'utf8').trim() : '') || undefined;
}

function read(path: string): NodeJS.Dict<string> {
  try {
    return parseEnv(readFileSync(path, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
}
