// Runs a long-running command of the project in its own process, as in production, with its log in a file, and waits until it
// is ready.

import { closeSync, fstatSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createLineReader } from './log-lines.ts';
import { lastLines } from './services/folders.ts';
import type { Guard, Guarded } from './services/guard.ts';

export const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

export type Program = Guarded & {
  /** The last lines of this run's log. */
  readonly lastLog: () => string;
  /** The lines of this run's log that nobody has taken yet. */
  readonly newLines: () => readonly string[];
};

const POLL_MS = 50;
const LOG_LINES = 15;

/** @param options.args those of `tallyhook`. @throws Error with the end of the log if it is not ready in time */
export async function startProgram(
  guard: Guard,
  options: {
    name: string;
    args: readonly string[];
    cwd: string;
    env: NodeJS.ProcessEnv;
    /** The log is appended to it. */
    logFile: string;
    /** Gets the lines that were logged since it was last asked. */
    isReady: (newLines: readonly string[]) => Promise<boolean>;
    readyTimeoutMs: number;
    /** Above its own grace time, within which it ends by itself. */
    endMs: number;
  },
): Promise<Program> {
  const { name, args, cwd, env, logFile, isReady } = options;
  const output = openSync(logFile, 'a', 0o600);
  const { size: logStart } = fstatSync(output);
  const lastLog = () => lastLines(logFile, LOG_LINES, logStart);
  const program = guard.spawn(process.execPath, [MAIN, ...args], {
    cwd,
    env,
    ending: { signal: 'SIGTERM', graceMs: options.endMs },
    output,
  });
  closeSync(output);
  const newLines = createLineReader(logFile, logStart);
  const deadlineMs = performance.now() + options.readyTimeoutMs;
  for (;;) {
    const isUp = await isReady(newLines());
    // Asked last: what answers may be another program, on a port that ours could not have.
    if (program.hasExited()) throw new Error(`the ${name} ended:\n${lastLog()}`);
    if (isUp) return { ...program, lastLog, newLines };
    if (performance.now() > deadlineMs) throw new Error(`the ${name} is not ready:\n${lastLog()}`);
    await sleep(POLL_MS);
  }
}
