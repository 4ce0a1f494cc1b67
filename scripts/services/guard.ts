// Starts processes that must not outlive us. Each runs in a process group of its own, so that the terminal's
// Ctrl-C does not reach it, and ends, with its throw-away folder, even if we are killed: a small shell process
// (guard.sh) holds the other end of a pipe and does it then.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';

export type Ending = {
  /** The signal that asks it to end. */
  readonly signal: 'SIGINT' | 'SIGTERM' | 'SIGQUIT' | 'SIGKILL';
  /** How long it may take before it is killed. */
  readonly graceMs: number;
};

type SpawnOptions = {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly ending: Ending;
  /** The signal for an end without grace; one on which it still clears up, if it knows such a one. */
  readonly lastSignal?: 'SIGKILL' | 'SIGQUIT';
  /** Others depend on it: it ends after them, also when it was started anew after them. */
  readonly endsLast?: boolean;
  /** Where standard output and error go: to ours, or to an open file. */
  readonly output: 'inherit' | number;
  readonly account?: { readonly uid: number; readonly gid: number } | undefined;
};

export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

export type Guarded = {
  readonly pid: number;
  readonly exited: Promise<Exit>;
  readonly hasExited: () => boolean;
  /** Sends a signal to its whole process group. Does nothing if it is gone. */
  readonly send: (signal: NodeJS.Signals) => void;
  /** Asks it to end, and kills it when its grace is over. Safe to call twice. */
  readonly end: (ending?: Ending) => Promise<Exit>;
  readonly endAtOnce: () => void;
};

export type Guard = AsyncDisposable & {
  readonly spawn: (command: string, args: readonly string[], options: SpawnOptions) => Guarded;
  /** Say so before making the folder: then there is no moment in which it could be left behind. */
  readonly removeInTheEnd: (folder: string) => void;
  /** Ends all that is running, the newest first and services last, then removes the folders. Safe to call twice. */
  readonly close: () => Promise<void>;
  /** The same without grace. */
  readonly closeAtOnce: () => Promise<void>;
  /** What ends from now on ends because we want it. */
  readonly isClosing: () => boolean;
};

// Read as a whole: a shell reads a script file piece by piece, and the file may change or go meanwhile.
const SCRIPT = readFileSync(new URL('guard.sh', import.meta.url), 'utf8');

/** Waits for the word before it becomes the command, so that nothing runs that the guard does not know of. */
const ON_THE_WORD = 'read -r word && exec "$@" </dev/null';

const AT_ONCE_MS = 1_000;

export function createGuard(): Guard {
  const shell = spawn('/bin/sh', ['-c', SCRIPT], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const orders = shell.stdin;
  // Its end is no reason for us to stay, and its loss none to fall.
  shell.unref();
  shell.on('error', () => {});
  orders.on('error', () => {});
  if ('unref' in orders) (orders as unknown as { unref: () => void }).unref();

  let running: readonly Guarded[] = [];
  let closing: Promise<void> | undefined;

  function spawnGuarded(command: string, args: readonly string[], options: SpawnOptions): Guarded {
    if (closing !== undefined) throw new Error(`cannot start ${command}: everything is being ended`);
    const child = spawn('/bin/sh', ['-c', ON_THE_WORD, 'sh', command, ...args], {
      cwd: options.cwd,
      env: options.env,
      detached: true,
      stdio: ['pipe', options.output, options.output],
      ...(options.account && { uid: options.account.uid, gid: options.account.gid }),
    });
    const { pid, stdin } = child;
    // The account or the folder may not do; told by the missing pid.
    child.on('error', () => {});
    if (pid === undefined) throw new Error(`cannot start ${command}`);
    const guarded = toGuarded(pid, child, options);
    running = options.endsLast ? [...running, guarded] : [guarded, ...running];
    void forgetAfterExit(guarded);
    const { signal, graceMs } = options.ending;
    orders.write(`watch ${pid} ${signal.slice('SIG'.length)} ${Math.ceil(graceMs / 100)}\n`);
    stdin?.on('error', () => {});
    stdin?.end('go\n');
    return guarded;
  }

  async function forgetAfterExit(guarded: Guarded): Promise<void> {
    await guarded.exited;
    running = running.filter((other) => other !== guarded);
    orders.write(`forget ${guarded.pid}\n`);
  }

  async function endAll(): Promise<void> {
    for (let newest = running[0]; newest !== undefined; newest = running[0]) await newest.end();
    if (shell.exitCode !== null || shell.signalCode !== null) return;
    shell.ref();
    const gone = once(shell, 'exit');
    orders.end();
    await gone;
  }

  const close = () => (closing ??= endAll());
  return {
    spawn: spawnGuarded,
    removeInTheEnd: (folder) => void orders.write(`remove ${folder}\n`),
    close,
    closeAtOnce: async () => {
      for (const each of running) each.endAtOnce();
      await close();
    },
    isClosing: () => closing !== undefined,
    [Symbol.asyncDispose]: close,
  };
}

function toGuarded(pid: number, child: ChildProcess, options: SpawnOptions): Guarded {
  const { promise: exited, resolve } = Promise.withResolvers<Exit>();
  let hasExited = false;
  const onExit = (exit: Exit) => {
    // What it may have left behind in its group; while we are here, the number cannot mean another one.
    send('SIGKILL');
    hasExited = true;
    resolve(exit);
  };
  child.on('exit', (code, signal) => onExit({ code, signal }));

  function send(signal: NodeJS.Signals): void {
    if (hasExited) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // It went in this very moment.
    }
  }

  async function end({ signal, graceMs }: Ending = options.ending): Promise<Exit> {
    send(signal);
    // A frozen process takes no signal but this one and SIGKILL.
    send('SIGCONT');
    const overdue = setTimeout(() => send('SIGKILL'), graceMs);
    try {
      return await exited;
    } finally {
      clearTimeout(overdue);
    }
  }

  function endAtOnce(): void {
    void end({ signal: options.lastSignal ?? 'SIGKILL', graceMs: AT_ONCE_MS });
  }

  return { pid, exited, hasExited: () => hasExited, send, end, endAtOnce };
}
