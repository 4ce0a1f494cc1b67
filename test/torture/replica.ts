// One replica of the world: `tallyhook serve` as a process of its own, on ports that stay the same over restarts, with a
// proxy on each of its links. It can be killed, frozen and restarted, its clock moved and its event loop blocked. Records
// whether an exit was asked for; restarts nothing by itself.

import { closeSync, openSync, readFileSync, readSync, rmSync, statSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { MAIN } from '../../scripts/program.ts';
import type { Exit, Guard, Guarded } from '../../scripts/services/guard.ts';
import { findFreePort } from '../../scripts/services/ports.ts';
import { listenOnFreePort } from '../support/origin.ts';
import { type Proxy, startProxy } from '../support/proxy.ts';
import { readMetric } from '../support/requests.ts';
import { until } from '../support/until.ts';

/** The links that have a proxy, by what is at their other end. */
export const LINKS = ['sender', 'postgres', 'rabbitmq'] as const;
export type LinkName = (typeof LINKS)[number];

/** `asked`: the signal that the harness sent; an exit without one is a bug. */
export type RecordedExit = Exit & {
  readonly replica: number;
  readonly atMs: number;
  readonly asked: NodeJS.Signals | undefined;
};

export type Replica = AsyncDisposable & {
  readonly index: number;
  /** Its address for senders, through the proxy. */
  readonly intake: string;
  /** The same, past the proxy. */
  readonly direct: string;
  /** The operators' port, past the proxies. */
  readonly operators: string;
  readonly links: Readonly<Record<LinkName, Proxy>>;
  readonly pid: () => number | undefined;
  /** Starts it unless it runs, and resolves when it is ready. @throws Error with the end of its log. */
  readonly start: (options?: { untilReady?: boolean }) => Promise<void>;
  /** SIGTERM, and resolves when it has ended. */
  readonly stop: () => Promise<void>;
  /** After SIGKILL it resolves when the process has ended. */
  readonly kill: (signal: NodeJS.Signals) => Promise<void>;
  /** Sets its wall clock off by so much, until it is restarted. */
  readonly shiftClock: (byMs: number) => void;
  /** Blocks its event loop. */
  readonly stall: (forMs: number) => void;
  /**
   * Sends it the signal between a commit and its publish, `holdMs` after the first message that it keeps back. If there is none
   * in time, at once. @returns how many messages it has kept back
   */
  readonly strikeAtHandOff: (signal: 'SIGKILL' | 'SIGSTOP', holdMs: number) => Promise<number>;
  readonly isReady: () => Promise<boolean>;
  /** One sample of /metrics. */
  readonly metric: (name: string) => Promise<number>;
  /** What it has logged in all its runs, after the first `fromByte` bytes. */
  readonly log: (fromByte?: number) => string;
  readonly logBytes: () => number;
};

const PRELOAD = new URL('preload.ts', import.meta.url).href;
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Without it a third of the time of each of many restarts would be compiling the same sources. */
const COMPILE_CACHE = fileURLToPath(new URL('../../node_modules/.cache/tallyhook-compile', import.meta.url));
const READY_LIMIT_MS = 60_000;
/** Longer than its own grace time of 20 s, after which it ends by itself. */
const ENDING = { signal: 'SIGTERM', graceMs: 30_000 } as const;
const PROBE_LIMIT_MS = 2_000;
/** With senders, a leader publishes all the time, unless another fault keeps it from that. */
const HAND_OFF_LIMIT_MS = 3_000;

/** Makes its ports, proxies and control socket. `start` starts the process. */
export async function createReplica(options: {
  index: number;
  guard: Guard;
  folder: string;
  /** Of each server of a cluster, or of the only one. */
  databaseUrls: readonly string[];
  amqpUrls: readonly string[];
  env: Readonly<Record<string, string>>;
  onExit: (exit: RecordedExit) => void;
}): Promise<Replica> {
  const { index, guard, folder, onExit } = options;
  const stack = new AsyncDisposableStack();
  const [port, operatorPort] = [await findFreePort(), await findFreePort()];
  const direct = `http://127.0.0.1:${port}`;
  const operators = `http://127.0.0.1:${operatorPort}`;
  const proxy = async (url: string, defaultPort: number) =>
    stack.use(await startProxy(url, { defaultPort, counts: 'bytes' }));
  const links = {
    sender: await proxy(direct, 80),
    postgres: joined(await Promise.all(options.databaseUrls.map((url) => proxy(url, 5432))), severalHosts),
    rabbitmq: joined(await Promise.all(options.amqpUrls.map((url) => proxy(url, 5672))), (urls) =>
      urls.join(),
    ),
  };
  const control = stack.use(await listenForReplica());
  const logFile = `${folder}/replica-${index}.log`;
  closeSync(openSync(logFile, 'a', 0o600));
  const reportFile = `${folder}/hand-off-${index}`;

  let running: Guarded | undefined;
  let asked: NodeJS.Signals | undefined;
  const isRunning = () => running !== undefined && !running.hasExited();

  function launch(): void {
    const output = openSync(logFile, 'a', 0o600);
    asked = undefined;
    const started = guard.spawn(process.execPath, ['--import', PRELOAD, MAIN, 'serve'], {
      cwd: ROOT,
      env: {
        PATH: process.env['PATH'],
        NODE_COMPILE_CACHE: COMPILE_CACHE,
        TORTURE_CONTROL: String(control.port),
        TORTURE_REPORT: reportFile,
        HOST: '127.0.0.1',
        PORT: String(port),
        OPERATOR_PORT: String(operatorPort),
        DATABASE_URL: links.postgres.url,
        AMQP_URL: links.rabbitmq.url,
        MIGRATE_ON_START: 'true',
        METRICS_OPEN: 'true',
        ...options.env,
      },
      ending: ENDING,
      output,
    });
    closeSync(output);
    running = started;
    void started.exited.then((exit) =>
      onExit({
        ...exit,
        replica: index,
        atMs: performance.now(),
        asked: guard.isClosing() ? 'SIGTERM' : asked,
      }),
    );
  }

  async function isReady(): Promise<boolean> {
    const response = await fetch(`${operators}/readyz`, { signal: AbortSignal.timeout(PROBE_LIMIT_MS) });
    await response.arrayBuffer();
    return response.ok;
  }

  const logBytes = () => statSync(logFile).size;

  function log(fromByte = 0): string {
    const file = openSync(logFile, 'r');
    try {
      const bytes = Buffer.alloc(Math.max(0, logBytes() - fromByte));
      return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, fromByte)).toString('utf8');
    } finally {
      closeSync(file);
    }
  }

  async function start({ untilReady = true }: { untilReady?: boolean } = {}): Promise<void> {
    if (!isRunning()) launch();
    if (!untilReady) return;
    const limit = { limitMs: READY_LIMIT_MS };
    await until('ready', async () => (await isReady()) || undefined, limit).catch((cause: unknown) => {
      const end = log().trimEnd().split('\n').slice(-15).join('\n');
      throw new Error(`replica ${index} is not ready:\n${end}`, { cause });
    });
  }

  async function stop(): Promise<void> {
    asked = 'SIGTERM';
    await running?.end();
  }

  async function kill(signal: NodeJS.Signals): Promise<void> {
    if (signal !== 'SIGSTOP' && signal !== 'SIGCONT' && signal !== 'SIGHUP') asked = signal;
    running?.send(signal);
    if (signal === 'SIGKILL') await running?.exited;
  }

  async function strikeAtHandOff(signal: 'SIGKILL' | 'SIGSTOP', holdMs: number): Promise<number> {
    rmSync(reportFile, { force: true });
    if (signal === 'SIGKILL') asked = signal;
    control.send(`hand-off ${signal} ${holdMs} ${HAND_OFF_LIMIT_MS}`);
    const limit = { limitMs: HAND_OFF_LIMIT_MS + holdMs + PROBE_LIMIT_MS };
    const kept = await until(
      'it is struck',
      () => Number(readFileSync(reportFile, 'utf8')) || undefined,
      limit,
    ).catch(() => 0);
    // It sends itself the signal now, or never will. A second SIGSTOP that came before its own would leave it stopped for good.
    if (kept === 0 || signal === 'SIGKILL') await kill(signal);
    return kept;
  }

  stack.defer(stop);
  return {
    index,
    intake: new URL(links.sender.url).origin,
    direct,
    operators,
    links,
    pid: () => (isRunning() ? running?.pid : undefined),
    start,
    stop,
    kill,
    shiftClock: (byMs) => control.send(`shift ${byMs}`),
    stall: (forMs) => control.send(`stall ${forMs}`),
    strikeAtHandOff,
    isReady,
    metric: (name) => readMetric(operators, name, { limitMs: PROBE_LIMIT_MS }),
    log,
    logBytes,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** One link for all servers of a cluster: what strikes it strikes each of its proxies. */
function joined(proxies: readonly Proxy[], join: (urls: readonly string[]) => string): Proxy {
  const [first] = proxies as readonly [Proxy];
  const all =
    <Args extends unknown[]>(act: (proxy: Proxy) => (...args: Args) => void) =>
    (...args: Args) => {
      for (const proxy of proxies) act(proxy)(...args);
    };
  return {
    ...first,
    url: join(proxies.map(({ url }) => url)),
    accepted: () => proxies.reduce((sum, { accepted }) => sum + accepted(), 0),
    stall: all(({ stall }) => stall),
    silence: all(({ silence }) => silence),
    cut: all(({ cut }) => cut),
    reset: all(({ reset }) => reset),
    slow: all(({ slow }) => slow),
    refuse: all(({ refuse }) => refuse),
    heal: all(({ heal }) => heal),
    failAfterFrames: all(({ failAfterFrames }) => failAfterFrames),
    failAfterBytes: all(({ failAfterBytes }) => failAfterBytes),
    stallAfterFrames: all(({ stallAfterFrames }) => stallAfterFrames),
  };
}

/** As libpq writes them. They differ by their hosts alone. */
function severalHosts(urls: readonly string[]): string {
  const [first] = urls as readonly [string];
  const hosts = urls.map((url) => new URL(url).host);
  return first.replace(hosts[0] as string, hosts.join());
}

/** The socket through which preload.ts gets its commands. */
async function listenForReplica(): Promise<
  AsyncDisposable & { readonly port: number; readonly send: (line: string) => void }
> {
  let latest: Socket | undefined;
  const server = createServer((socket) => {
    latest = socket;
    socket.on('error', () => {}); // it was killed
    socket.on('close', () => {
      if (latest === socket) latest = undefined;
    });
  });
  return {
    port: await listenOnFreePort(server),
    send: (line) => void latest?.write(`${line}\n`),
    [Symbol.asyncDispose]: async () => {
      latest?.destroy();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
    },
  };
}
