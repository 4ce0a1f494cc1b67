// The command line as an operator uses it, with an address and a token, piped or on a terminal. It is called in the test's own
// process, which takes milliseconds. What only a process of its own shows (a real terminal, a real signal, a pipe that closes,
// the exit code of the shell, the environment of Node) is for `startProcess` in replica.ts.

import { EventEmitter } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { StringDecoder } from 'node:string_decoder';
import { stripVTControlCharacters } from 'node:util';
import { createIo, type Host } from '../../src/terminal/io.ts';
import { run } from '../../src/cli/run.ts';
import type { TestDatabase } from './database.ts';
import { newToken, type TokenOptions } from './operators.ts';
import { NO_LOCAL_RUN } from './replica.ts';

type Finished = { readonly code: number; readonly stdout: string; readonly stderr: string };
type Variables = Readonly<Record<string, string>>;

export type RunningCommand = AsyncDisposable & {
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Sends it a signal. @returns whether it listens for that */
  readonly signal: (name: NodeJS.Signals) => boolean;
  /** With the exit code. */
  readonly exited: Promise<number>;
};

export type Cli = {
  readonly env: Variables;
  /** Piped. Resolves when it has ended. */
  readonly run: (...args: string[]) => Promise<Finished>;
  /** Piped. @returns what it printed, parsed line by line. @throws Error if its exit code is not 0 */
  readonly items: <T = Record<string, unknown>>(...args: string[]) => Promise<T[]>;
  /** Piped. */
  readonly start: (...args: string[]) => RunningCommand;
  /** On a terminal of 120 columns, on which `input` is typed. Without colours. */
  readonly onTerminal: (args: readonly string[], input?: string) => Promise<{ code: number; screen: string }>;
};

/** With a new token. */
export async function cliOf(
  relay: { readonly operators: string; readonly database: Pick<TestDatabase, 'url'> },
  token: TokenOptions = {},
): Promise<Cli> {
  const { value } = await newToken(relay.database, token);
  return cliWith({ TALLYHOOK_URL: relay.operators, TALLYHOOK_TOKEN: value });
}

export function cliWith(env: Variables): Cli {
  const runWith = (...args: string[]) => runCommand(args, { env });
  return {
    env,
    run: runWith,
    start: (...args) => startCommand(args, { env }),
    items: async <T>(...args: string[]) => {
      const { code, stdout, stderr } = await runWith(...args);
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

/** Runs `tallyhook <args>` with this environment and nothing else, piped, and waits for its end. */
export async function runCommand(
  args: readonly string[],
  options: { env?: Variables; input?: string } = {},
): Promise<Finished> {
  const command = startCommand(args, options);
  return { code: await command.exited, stdout: command.stdout(), stderr: command.stderr() };
}

/** The same without waiting. Disposing of it ends it with SIGINT. */
export function startCommand(
  args: readonly string[],
  { env = {}, input = '' }: { env?: Variables; input?: string } = {},
): RunningCommand {
  const [stdout, stderr] = [createOutput(), createOutput()];
  const stdin = createInput(input, { isTTY: false }).end();
  const { exited, signal } = call(args, env, { stdin, stdout: stdout.stream, stderr: stderr.stream });
  return {
    stdout: stdout.text,
    stderr: stderr.text,
    signal,
    exited,
    [Symbol.asyncDispose]: async () => {
      const ended = exited.then(
        () => true,
        () => true,
      );
      // It may not listen for signals yet. A second one would end it before it has given back what it holds.
      let isHeard = false;
      while (!(await Promise.race([ended, sleep(SIGNAL_MS, false)]))) isHeard ||= signal('SIGINT');
    },
  };
}

/** Between two signals to a command that does not listen yet. */
const SIGNAL_MS = 20;

async function onTerminal(
  args: readonly string[],
  input: string,
  env: Variables,
): Promise<{ code: number; screen: string }> {
  const { stream, text } = createOutput({ isTTY: true, columns: 120 });
  const stdin = createInput(input, { isTTY: true });
  const code = await call(args, env, { stdin, stdout: stream, stderr: stream }).exited;
  return { code, screen: stripVTControlCharacters(text()).replaceAll('\r', '') };
}

function call(
  args: readonly string[],
  env: Variables,
  streams: Pick<Host, 'stdin' | 'stdout' | 'stderr'>,
): Pick<RunningCommand, 'exited' | 'signal'> {
  const signals = new EventEmitter();
  const { promise: exit, resolve } = Promise.withResolvers<number>();
  const host: Host = {
    ...streams,
    on: (name, listener) => signals.on(name, listener),
    once: (name, listener) => signals.once(name, listener),
    off: (name, listener) => signals.off(name, listener),
    exit: resolve,
  };
  const exited = Promise.race([run(args, { ...NO_LOCAL_RUN, ...env }, createIo(host)), exit]);
  exited.catch(() => {});
  return { exited, signal: (name) => signals.emit(name, name) };
}

/** A stream that keeps what is written to it. */
function createOutput(terminal: { isTTY: boolean; columns: number } = { isTTY: false, columns: 0 }) {
  const decoder = new StringDecoder('utf8');
  let text = '';
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      text += decoder.write(chunk);
      done();
    },
  });
  return { stream: Object.assign(stream, terminal), text: () => text };
}

/** What is typed before the question is asked, is kept until it is read. */
function createInput(text: string, terminal: { isTTY: boolean }) {
  const stream = Object.assign(new PassThrough(), terminal);
  stream.write(text);
  return stream;
}
