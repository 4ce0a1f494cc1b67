// Runs `tallyhook serve` and `tallyhook tail` in processes of their own, as in production.

import { fileURLToPath } from 'node:url';
import { MAIN, type Program, startProgram } from './program.ts';
import type { Guard, Guarded } from './services/guard.ts';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

const READY_TIMEOUT_MS = 30_000;
/** Above the relay's own grace time, within which it ends by itself. */
const END_MS = 30_000;
const TAIL_END_MS = 3_000;

/** The relay logs it when it has both ports, as JSON or with LOG_PRETTY. */
const LISTENING = /"msg":"listening"|INFO: listening$/;
/** Levels at which that line is not logged. */
const QUIET_LEVELS: readonly unknown[] = ['warn', 'error', 'fatal', 'silent'];

type Relay = Program;

/** For `logFile`, where the log itself would disturb: the benchmark. */
export const NO_LOG = '/dev/null';

/**
 * `tallyhook serve`, its log appended to `logFile`. Resolves when it is ready. With NO_LOG it cannot be told from another relay that
 * answers on its ports.
 * @throws Error with the log's end
 */
export async function startRelay(
  guard: Guard,
  { env, logFile }: { env: NodeJS.ProcessEnv; logFile: string },
): Promise<Relay> {
  // Another relay may answer on these ports. Only our own one writes to this log.
  let isListening = logFile === NO_LOG;
  // Both ports: the operators' one may answer before senders can connect.
  const sides = [env['OPERATOR_PORT'], env['PORT']];
  return startProgram(guard, {
    name: 'relay',
    args: ['serve'],
    cwd: ROOT,
    env: QUIET_LEVELS.includes(env['LOG_LEVEL']) ? { ...env, LOG_LEVEL: 'info' } : env,
    logFile,
    isReady: async (newLines) => {
      isListening ||= newLines.some((line) => LISTENING.test(line));
      return isListening && areReady(sides);
    },
    readyTimeoutMs: READY_TIMEOUT_MS,
    endMs: END_MS,
  });
}

/** `tallyhook tail`, which prints to our own output. */
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
