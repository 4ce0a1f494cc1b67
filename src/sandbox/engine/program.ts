// Runs one program to its end. When this resolves or rejects, the program is gone, and on Linux it goes with us even if
// we are killed. Its memory is bounded. It gets no input, and nothing of our environment, in which there may be secrets.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';

export type ProgramEnd = {
  /** Null if a signal ended it. */
  readonly exitCode: number | null;
  /** The end of what it complained of. May name local paths. */
  readonly complaint: string;
};

export type ProgramOptions = {
  /** It sees its files by their bare names, so that no message of it can tell where they are. */
  readonly folder: string;
  /** Kills it. */
  readonly signal: AbortSignal;
  /** Each line of its standard output. What this throws ends the program and is thrown on. */
  readonly onLine: (line: string) => void;
};

/** Of util-linux, which every Linux has. It becomes the program, with the same process id. */
const SETPRIV = '/usr/bin/setpriv';

/**
 * Address space: a small file can make ffmpeg take gigabytes. Converting 4K takes up to 1.6 GB of it (0.6 to 1.2 GB of
 * memory), the most for VP9.
 */
const MEMORY_KIB = 2 * 1024 * 1024;

/**
 * The shell's own `ulimit`, since each system has a shell, and util-linux' prlimit is on Linux alone. The shell becomes the
 * program, with the same process id, and reads nothing of the arguments. Where the system knows no such limit (macOS) it
 * runs without.
 */
const WITH_LIMIT: readonly string[] = [
  '/bin/sh',
  '-c',
  `ulimit -v ${MEMORY_KIB} 2>/dev/null; exec "$0" "$@"`,
];

/** Enough for the reason, which comes last. */
const COMPLAINT_LENGTH = 4_096;

/** @throws the signal's reason once it is aborted, what `onLine` throws, or the system's error if it cannot start. */
export async function runProgram(
  program: string,
  args: readonly string[],
  { folder, signal, onLine }: ProgramOptions,
): Promise<ProgramEnd> {
  signal.throwIfAborted();
  const child = spawn(...leashed(program, args), {
    cwd: folder,
    env: { LC_ALL: 'C' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // It has nothing to clear up: its files go with their folder.
  const kill = () => void child.kill('SIGKILL');
  const { promise: closed, resolve } = Promise.withResolvers<number | null>();
  let startError: Error | undefined;
  let complaint = '';
  child.once('error', (error) => {
    startError = error;
  });
  child.once('close', resolve);
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-COMPLAINT_LENGTH);
  });
  signal.addEventListener('abort', kill, { once: true });
  try {
    for await (const line of createInterface({ input: child.stdout })) onLine(line);
  } finally {
    // On the way out by an error it still runs; otherwise it closed its output because it ends.
    if (signal.aborted || !child.stdout.readableEnded) kill();
    await closed;
    signal.removeEventListener('abort', kill);
  }
  signal.throwIfAborted();
  if (startError !== undefined) throw startError;
  return { exitCode: await closed, complaint };
}

/** The kernel kills it when we die, however that happens. Elsewhere it runs on to its end then. */
function leashed(program: string, args: readonly string[]): [string, readonly string[]] {
  const limited = [...WITH_LIMIT, program, ...args];
  const [first = program, ...rest] = existsSync(SETPRIV)
    ? [SETPRIV, '--pdeathsig', 'KILL', '--', ...limited]
    : limited;
  return [first, rest];
}
