// The command line as an operator uses it: a process with an address and a token, piped or on a terminal.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { MAIN } from '../../scripts/program.ts';
import type { TestDatabase } from './database.ts';
import { newToken, type TokenOptions } from './operators.ts';
import { INHERITED, type RunningCommand, runCommand, startCommand } from './replica.ts';

type Finished = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

export type Cli = {
  readonly env: Readonly<Record<string, string>>;
  /** Piped. Resolves when it has ended. */
  readonly run: (...args: string[]) => Promise<Finished>;
  /** Piped. @returns what it printed, parsed line by line. @throws Error if its exit code is not 0 */
  readonly items: <T = Record<string, unknown>>(...args: string[]) => Promise<T[]>;
  readonly start: (...args: string[]) => RunningCommand;
  /** On a terminal of 120 columns, on which `input` is typed. Without colours. */
  readonly onTerminal: (
    args: readonly string[],
    input?: string,
  ) => Promise<{ code: number | null; screen: string }>;
};

const SCRIPT = '/usr/bin/script';

/** `script` of util-linux gives a process a terminal. */
export const hasTerminal = existsSync(SCRIPT);

/** With a new token. */
export async function cliOf(
  relay: { readonly operators: string; readonly database: Pick<TestDatabase, 'url'> },
  token: TokenOptions = {},
): Promise<Cli> {
  const { value } = await newToken(relay.database, token);
  return cliWith({ TALLYHOOK_URL: relay.operators, TALLYHOOK_TOKEN: value });
}

export function cliWith(env: Readonly<Record<string, string>>): Cli {
  const run = (...args: string[]) => runCommand(args, { env });
  return {
    env,
    run,
    start: (...args) => startCommand(args, { env }),
    items: async <T>(...args: string[]) => {
      const { code, stdout, stderr } = await run(...args);
      if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stderr}`);
      return parseLines<T>(stdout);
    },
    onTerminal: (args, input = '') => onTerminal(args, input, env),
  };
}

export function parseLines<T = Record<string, unknown>>(text: string): T[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}

async function onTerminal(
  args: readonly string[],
  input: string,
  env: Readonly<Record<string, string>>,
): Promise<{ code: number | null; screen: string }> {
  const command = [process.execPath, MAIN, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
  const child = spawn(SCRIPT, ['-qec', `stty cols 120; exec ${command.join(' ')}`, '/dev/null'], {
    env: { ...INHERITED, TERM: 'xterm', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let screen = '';
  child.stdout.on('data', (chunk: Buffer) => (screen += chunk.toString('utf8')));
  // Typed before the question is asked: the terminal keeps it until it is read.
  child.stdin.write(input);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { code, screen: stripVTControlCharacters(screen).replaceAll('\r', '') };
}
