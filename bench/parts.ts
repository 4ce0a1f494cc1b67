// Starts the benchmark's parts as processes of their own under the guard, each with a control connection, and asks them for
// their measurements. When a part fails or ends, all that waits for it fails with the end of its output.

import { randomBytes } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lastLines } from '../scripts/services/folders.ts';
import type { Guard, Guarded } from '../scripts/services/guard.ts';
import { openSwitchboard } from './control.ts';
import type { LoadPlan, LoadReport, LoadSecond } from './load/plan.ts';

type Part = {
  readonly pid: number;
  readonly tell: (kind: string, value?: unknown) => void;
  readonly on: (kind: string, listen: (value: unknown) => void) => void;
  /** The next line of that kind. @throws Error if the part fails, ends, or takes longer */
  readonly next: <T>(kind: string, timeoutMs: number) => Promise<T>;
  readonly end: () => Promise<void>;
};

export type Parts = {
  /** @param script its path below `bench/` */
  readonly start: (script: string, env?: NodeJS.ProcessEnv) => Promise<Part>;
  readonly close: () => Promise<void>;
};

const CONNECT_TIMEOUT_MS = 15_000;
const ENDING = { signal: 'SIGTERM', graceMs: 2_000 } as const;

export async function openParts(guard: Guard, folder: string): Promise<Parts> {
  const switchboard = await openSwitchboard();

  async function start(script: string, env: NodeJS.ProcessEnv = {}): Promise<Part> {
    const token = randomBytes(16).toString('hex');
    const logFile = join(folder, `${script.replaceAll('/', '-')}-${token.slice(0, 6)}.log`);
    const output = openSync(logFile, 'a', 0o600);
    const path = fileURLToPath(new URL(script, import.meta.url));
    const guarded = guard.spawn(process.execPath, [path, String(switchboard.port), token], {
      cwd: fileURLToPath(new URL('..', import.meta.url)),
      env: { PATH: process.env['PATH'], NODE_ENV: 'production', ...env },
      ending: ENDING,
      output,
    });
    closeSync(output);
    const connected = switchboard.expect(token);
    const line = await inTime(Promise.race([connected, failWhenEnded(guarded, script, logFile)]), {
      what: `${script} does not start`,
      timeoutMs: CONNECT_TIMEOUT_MS,
    });
    return toPart(guarded, { ...line, script, logFile });
  }

  return { start, close: switchboard.close };
}

function toPart(
  guarded: Guarded,
  line: Awaited<ReturnType<Awaited<ReturnType<typeof openSwitchboard>>['expect']>> & {
    script: string;
    logFile: string;
  },
): Part {
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {});
  line.on('failed', (text) => failed.reject(new Error(`${line.script} failed: ${String(text)}`)));
  failWhenEnded(guarded, line.script, line.logFile).catch(failed.reject);
  return {
    pid: guarded.pid,
    tell: line.tell,
    on: line.on,
    next: <T>(kind: string, timeoutMs: number) =>
      inTime(Promise.race([line.once(kind) as Promise<T>, failed.promise]), {
        what: `${line.script} does not say "${kind}"`,
        timeoutMs,
      }),
    end: async () => {
      await guarded.end();
    },
  };
}

async function failWhenEnded(guarded: Guarded, script: string, logFile: string): Promise<never> {
  const { code, signal } = await guarded.exited;
  throw new Error(`${script} ended (${signal ?? code}):\n${lastLines(logFile, 15)}`);
}

async function inTime<T>(
  wanted: Promise<T>,
  { what, timeoutMs }: { what: string; timeoutMs: number },
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} within ${timeoutMs / 1_000} s`)), timeoutMs);
  });
  try {
    return await Promise.race([wanted, late]);
  } finally {
    clearTimeout(timer);
  }
}

export type Generator = {
  readonly pid: number;
  /** Starts the load. The promises reject if the generator fails. */
  readonly go: () => {
    /** With the number of different notifications that are acknowledged by then. */
    readonly windowBegins: Promise<number>;
    readonly windowEnds: Promise<number>;
    readonly report: Promise<LoadReport>;
  };
  /** Ends the warm-up now. */
  readonly begin: () => void;
  /** Ends the window now. The report follows. */
  readonly stop: () => void;
  readonly end: () => Promise<void>;
};

/** Signing takes 10 µs a notification, and far more for large ones. */
const READY_TIMEOUT_MS = 180_000;
const GRACE_MS = 60_000;

/** Resolves when its stock is signed and it waits for `go`. A generator does one run. */
export async function startGenerator(
  parts: Parts,
  plan: LoadPlan,
  onSecond: (second: LoadSecond) => void = () => {},
): Promise<Generator> {
  const part = await parts.start('load/generator.ts');
  const ready = part.next('ready', READY_TIMEOUT_MS);
  part.tell('plan', plan);
  await ready;
  part.on('second', (second) => onSecond(second as LoadSecond));
  return {
    pid: part.pid,
    begin: () => part.tell('begin'),
    stop: () => part.tell('stop'),
    end: part.end,
    go: () => {
      const warmUpMs = plan.warmUpS * 1_000 + GRACE_MS;
      const durationMs = warmUpMs + plan.durationS * 1_000;
      const windowBegins = part.next<number>('window', warmUpMs);
      const windowEnds = windowBegins.then(() => part.next<number>('window', durationMs));
      const report = part.next<LoadReport>('done', durationMs);
      // A failure rejects all of them. Those that nobody awaits must not end the process.
      for (const promise of [windowBegins, windowEnds, report]) promise.catch(() => {});
      part.tell('go');
      return { windowBegins, windowEnds, report };
    },
  };
}
