// Runs one program to its end. When this resolves or rejects, the program has ended; on Linux it also ends when this
// process is killed. Its memory is limited. It gets no input and none of our environment, which can contain secrets.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';

export type ProgramEnd = {
  /** Null if a signal ended it. */
  readonly exitCode: number | null;
  /** The end of its standard error. Can contain local paths. */
  readonly complaint: string;
};

export type ProgramOptions = {
  /** Its working folder. It gets bare file names, so that its messages cannot contain this path. */
  readonly folder: string;
  /** Kills it. */
  readonly signal: AbortSignal;
  /** Gets each line of its standard output. An error thrown here ends the program and is thrown on. */
  readonly onLine: (line: string) => void;
};

/** Part of util-linux, which every Linux has. It replaces itself with the program: same process id. */
const SETPRIV = '/usr/bin/setpriv';

/**
 * Limit of the address space, since a small file can make ffmpeg allocate gigabytes. Converting 4K needs up to 1.6 GB of
 * address space (0.6 to 1.2 GB of memory), most of all for VP9.
 */
const MEMORY_KIB = 2 * 1024 * 1024;

/**
 * The shell's `ulimit`, since every system has a shell, while util-linux' prlimit exists on Linux alone. The shell replaces
 * itself with the program and interprets none of the arguments. A system without this limit (macOS) runs the program
 * without it.
 */
const WITH_LIMIT: readonly string[] = [
  '/bin/sh',
  '-c',
  `ulimit -v ${MEMORY_KIB} 2>/dev/null; exec "$0" "$@"`,
];

/** Enough for the reason, which ffmpeg prints last. */
const COMPLAINT_LENGTH = 4_096;

/** @throws the signal's reason once it is aborted, what `onLine` throws, or the system's error if it cannot start. */
export async function runProgram(
  program: string,
  args: readonly string[],
  { folder, signal, onLine }: ProgramOptions,
): Promise<ProgramEnd> {
  signal.throwIfAborted();
  const child = spawn(...commandFor(program, args), {
    cwd: folder,
    env: { LC_ALL: 'C' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // SIGKILL at once: the program has nothing to clean up, since its folder is removed.
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
    // After an error in `onLine` the program still runs. Otherwise it has closed its output and is ending.
    if (signal.aborted || !child.stdout.readableEnded) kill();
    await closed;
    signal.removeEventListener('abort', kill);
  }
  signal.throwIfAborted();
  if (startError !== undefined) throw startError;
  return { exitCode: await closed, complaint };
}

/** On Linux the kernel kills the program when this process dies. On other systems it then runs to its end. */
function commandFor(program: string, args: readonly string[]): [string, readonly string[]] {
  const limited = [...WITH_LIMIT, program, ...args];
  const [first = program, ...rest] = existsSync(SETPRIV)
    ? [SETPRIV, '--pdeathsig', 'KILL', '--', ...limited]
    : limited;
  return [first, rest];
}
