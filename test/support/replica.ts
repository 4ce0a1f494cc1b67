// A replica as operators run it: a process of its own, started with `serve`, that can be signalled and killed. And any other
// command of the program as a process, for the tests that are about one: all others call the command (cli.ts).

import { type ChildProcess, spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { MAIN } from '../../scripts/program.ts';
import { UNHEARD } from './bus.ts';
import { fetchAfresh, readMetric } from './requests.ts';
import { serviceEnv } from './service-env.ts';
import { tellLog } from './starts.ts';
import { waitFor } from './waits.ts';

/**
 * The only environment that a process inherits. The compile cache saves each of dozens of processes a third of its time. What
 * a killed one leaves in the temporary folder is removed with the run's.
 */
export const INHERITED: Readonly<Record<string, string>> = {
  PATH: process.env['PATH'] ?? '',
  TMPDIR: tmpdir(),
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/tallyhook-compile', import.meta.url)),
};

/** A command reads nothing that `npm start` wrote in this clone. */
export const NO_LOCAL_RUN = { TALLYHOOK_LOCAL_ENV: '' } as const;

type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };
type LogLine = Readonly<Record<string, unknown>>;

export type Replica = AsyncDisposable & {
  readonly pid: number;
  readonly webhooks: string;
  readonly intake: string;
  readonly operators: string;
  readonly exchange: string;
  /** Everything logged so far, parsed. */
  readonly log: readonly LogLine[];
  /** Stops reading its log, as a reader that hangs does, or with `false` reads on. */
  readonly stallLog: (isStalled: boolean) => void;
  readonly kill: (signal: NodeJS.Signals) => void;
  readonly exited: Promise<Exit>;
  readonly hasExited: () => boolean;
  /** The value of one sample, by its name and labels as written. */
  readonly metric: (name: string) => Promise<number>;
  readonly readiness: () => Promise<{ status: number; body: Record<string, unknown> }>;
};

export type RunningProcess = AsyncDisposable & {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly exited: Promise<Exit>;
};

/** Starts `tallyhook <args>` with this environment and INHERITED, and nothing else. `main`: that of a copy, with its local run. */
export function startProcess(
  args: readonly string[],
  { main, ...options }: { env?: Record<string, string>; main?: string; cwd?: string } = {},
): RunningProcess {
  const env = main === undefined ? { ...NO_LOCAL_RUN, ...options.env } : options.env;
  return startProgram(process.execPath, [main ?? MAIN, ...args], { ...options, ...(env && { env }) });
}

/** The same for any program. */
export function startProgram(
  program: string,
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string } = {},
): RunningProcess {
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: { ...INHERITED, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString('utf8')));
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString('utf8')));
  const exited = new Promise<Exit>((resolve, reject) => {
    child.once('error', reject);
    // Not `exit`: then its last output may not have been read yet.
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  exited.catch(() => {});
  return {
    child,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    exited,
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
      await exited.catch(() => {});
    },
  };
}

/** Runs a command and waits for its end. */
export async function runProcess(
  args: readonly string[],
  options: { env?: Record<string, string>; main?: string } = {},
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  await using command = startProcess(args, options);
  const { code } = await command.exited;
  return { code, stdout: command.stdout(), stderr: command.stderr() };
}

/**
 * Starts `serve` on free ports and waits until it listens and is ready; with `waitUntilReady: false` only until it listens.
 * `env` overrides single variables.
 */
export async function startReplica(options: {
  databaseUrl: string;
  exchange?: string;
  env?: Record<string, string>;
  main?: string;
  waitUntilReady?: boolean;
}): Promise<Replica> {
  const exchange = options.exchange ?? UNHEARD;
  const command = startProcess(['serve'], {
    ...(options.main !== undefined && { main: options.main }),
    env: {
      ...serviceEnv({ databaseUrl: options.databaseUrl, exchange }),
      RELAY_POLL_MS: '50',
      ...options.env,
    },
  });
  const log = parsedLines(command);
  const { child } = command;
  const hasExited = () => child.exitCode !== null || child.signalCode !== null;
  try {
    const line = await waitFor(
      () => {
        const found = log.find(({ msg }) => msg === 'listening');
        if (found !== undefined) return found;
        throw new Error(`not listening: ${command.stdout()}${command.stderr()}`);
      },
      { timeout: 20_000, interval: 20 },
    );
    const replica = toReplica(command, { log, exchange, line, hasExited });
    if (options.waitUntilReady !== false) await untilReady(replica);
    return replica;
  } catch (error) {
    await command[Symbol.asyncDispose]();
    throw error;
  }
}

/** Waits for a 200 of /readyz. */
export function untilReady(replica: Pick<Replica, 'readiness'>, timeoutMs = 20_000): Promise<void> {
  return waitFor(
    async () => {
      const { status, body } = await replica.readiness();
      if (status !== 200) throw new Error(`not ready: ${JSON.stringify(body)}`);
    },
    { timeout: timeoutMs, interval: 50 },
  );
}

/** The one of these that leads the relay, if it can be found. */
export async function leaderOf<Each extends Pick<Replica, 'metric'>>(
  replicas: readonly Each[],
): Promise<Each | undefined> {
  for (const replica of replicas) {
    const leads = await replica.metric('tallyhook_relay_lease_held').catch(() => 0);
    if (leads === 1) return replica;
  }
  return undefined;
}

/** Waits until this replica leads the relay. */
export function untilLeading(replica: Pick<Replica, 'metric'>, timeoutMs = 10_000): Promise<void> {
  return waitFor(
    async () => {
      if ((await replica.metric('tallyhook_relay_lease_held')) !== 1) throw new Error('does not lead');
    },
    { timeout: timeoutMs, interval: 30 },
  );
}

function parsedLines(command: RunningProcess): LogLine[] {
  const log: LogLine[] = [];
  tellLog(log);
  let read = 0;
  command.child.stdout?.on('data', () => {
    const text = command.stdout();
    const end = text.lastIndexOf('\n') + 1;
    for (const line of text.slice(read, end).split('\n')) {
      if (line !== '') log.push(JSON.parse(line) as LogLine);
    }
    read = end;
  });
  return log;
}

function toReplica(
  command: RunningProcess,
  options: { log: LogLine[]; exchange: string; line: LogLine; hasExited: () => boolean },
): Replica {
  const { log, exchange, line, hasExited } = options;
  const intake = `http://127.0.0.1:${String(line['port'])}`;
  const operators = `http://127.0.0.1:${String(line['operatorPort'])}`;
  return {
    pid: command.child.pid as number,
    intake,
    operators,
    webhooks: `${intake}/webhooks`,
    exchange,
    log,
    stallLog: (isStalled) => {
      if (isStalled) command.child.stdout?.pause();
      else command.child.stdout?.resume();
    },
    hasExited,
    exited: command.exited,
    kill: (signal) => void command.child.kill(signal),
    metric: (name) => readMetric(operators, name),
    readiness: async () => {
      const response = await fetchAfresh(`${operators}/readyz`);
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    },
    [Symbol.asyncDispose]: command[Symbol.asyncDispose],
  };
}
