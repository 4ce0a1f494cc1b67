// Starts processes that must not outlive us. Each runs in a process group of its own, which the terminal's Ctrl-C does not reach.
// If we are killed, they are ended and their throw-away folders are deleted all the same: a small shell process (guard.sh) reads
// from a pipe of ours and does that when the pipe closes.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Socket } from 'node:net';

export type Ending = {
  /** The signal that asks it to end. */
  readonly signal: 'SIGINT' | 'SIGTERM' | 'SIGQUIT' | 'SIGKILL';
  /** After this time it is killed. */
  readonly graceMs: number;
};

type SpawnOptions = {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly ending: Ending;
  /** The signal for an end without grace: one on which the program still cleans up, if it has such a one. */
  readonly lastSignal?: 'SIGKILL' | 'SIGQUIT';
  /** It is ended after the others, which depend on it, even if it was restarted after them. */
  readonly endsLast?: boolean;
  /** Standard output and error go to ours, or to this open file. */
  readonly output: 'inherit' | number;
  readonly account?: { readonly uid: number; readonly gid: number } | undefined;
};

export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

export type Guarded = {
  readonly pid: number;
  readonly exited: Promise<Exit>;
  readonly hasExited: () => boolean;
  /** Sends a signal to its whole process group. Does nothing if it has ended. */
  readonly send: (signal: NodeJS.Signals) => void;
  /** Asks it to end, and kills it after its grace time. Safe to call twice. */
  readonly end: (ending?: Ending) => Promise<Exit>;
  readonly endAtOnce: () => void;
};

export type Guard = AsyncDisposable & {
  readonly spawn: (command: string, args: readonly string[], options: SpawnOptions) => Guarded;
  /** Call it before the folder is made, so that the folder cannot be left behind. */
  readonly removeInTheEnd: (folder: string) => void;
  /** Ends what is running, the newest first and services last, then deletes the folders. Safe to call twice. */
  readonly close: () => Promise<void>;
  /** The same without grace. */
  readonly closeAtOnce: () => Promise<void>;
  /** From now on, processes end because we end them. */
  readonly isClosing: () => boolean;
};

// Read as a whole: a shell reads a script file piece by piece, and the file may be changed or deleted meanwhile.
const SCRIPT = readFileSync(new URL('guard.sh', import.meta.url), 'utf8');

/** Waits for a line before it becomes the command, so that nothing runs that the guard does not know of. */
const START_ON_LINE = 'read -r word && exec "$@" </dev/null';

const AT_ONCE_MS = 1_000;

export function createGuard(): Guard {
  const shell = spawn('/bin/sh', ['-c', SCRIPT], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const orders = shell.stdin;
  // It must not keep us alive, and its loss must not end us.
  shell.unref();
  shell.on('error', () => {});
  orders.on('error', () => {});
  if (orders instanceof Socket) orders.unref();

  let running: readonly Guarded[] = [];
  let closing: Promise<void> | undefined;

  function spawnGuarded(command: string, args: readonly string[], options: SpawnOptions): Guarded {
    if (closing !== undefined) throw new Error(`cannot start ${command}: everything is being ended`);
    const child = spawn('/bin/sh', ['-c', START_ON_LINE, 'sh', command, ...args], {
      cwd: options.cwd,
      env: options.env,
      detached: true,
      stdio: ['pipe', options.output, options.output],
      ...(options.account && { uid: options.account.uid, gid: options.account.gid }),
    });
    const { pid, stdin } = child;
    // The account or the folder may not be allowed to run it: the missing pid shows that.
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
    // Kills what it may have left in its group. Until we have handled its end, the number cannot be another group's.
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
      // It ended at this moment.
    }
  }

  async function end({ signal, graceMs }: Ending = options.ending): Promise<Exit> {
    send(signal);
    // A stopped process handles no signal but this one and SIGKILL.
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
