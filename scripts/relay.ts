// Runs the relay as its own process, as it would run in production, and waits until it is ready.

import { closeSync, fstatSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { lastLines } from './services/folders.ts';
import type { Guard, Guarded } from './services/guard.ts';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const READY_TIMEOUT_MS = 30_000;
const POLL_MS = 50;
/** Above the relay's own grace time, after which it ends by itself. */
const END_MS = 30_000;
const TAIL_END_MS = 3_000;
const LOG_LINES = 15;

export type Relay = Guarded & {
  /** The end of what this run of it has logged. */
  readonly lastLog: () => string;
};

/** `tallyhook serve`, its log appended to `logFile`. Resolves when it is ready. @throws Error with the log's end. */
export async function startRelay(
  guard: Guard,
  { env, logFile }: { env: NodeJS.ProcessEnv; logFile: string },
): Promise<Relay> {
  const output = openSync(logFile, 'a', 0o600);
  const { size: logStart } = fstatSync(output);
  const lastLog = () => lastLines(logFile, LOG_LINES, logStart);
  const relay = guard.spawn(process.execPath, [MAIN, 'serve'], {
    cwd: ROOT,
    env,
    ending: { signal: 'SIGTERM', graceMs: END_MS },
    output,
  });
  closeSync(output);
  // Both: the operators' side may answer before senders can connect.
  const sides = [env['OPERATOR_PORT'], env['PORT']];
  const deadlineMs = performance.now() + READY_TIMEOUT_MS;
  while (!(await areReady(sides))) {
    if (relay.hasExited()) throw new Error(`the relay ended:\n${lastLog()}`);
    if (performance.now() > deadlineMs) throw new Error(`the relay is not ready:\n${lastLog()}`);
    await sleep(POLL_MS);
  }
  return { ...relay, lastLog };
}

/** `tallyhook tail` on our own output. */
export function startTail(guard: Guard, env: NodeJS.ProcessEnv): Guarded {
  return guard.spawn(process.execPath, [MAIN, 'tail'], {
    cwd: ROOT,
    env,
    ending: { signal: 'SIGTERM', graceMs: TAIL_END_MS },
    output: 'inherit',
  });
}

async function areReady(ports: readonly (string | undefined)[]): Promise<boolean> {
  try {
    for (const port of ports) {
      const response = await fetch(`http://127.0.0.1:${port}/readyz`, { signal: AbortSignal.timeout(2_000) });
      await response.arrayBuffer();
      if (!response.ok) return false;
    }
    return true;
  } catch {
    return false;
  }
}
