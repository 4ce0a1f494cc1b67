// Floods of clients without a secret, on bare sockets. Each is bounded in connections and time, and ends by itself. It runs in
// a process of its own, so that it does not block the event loop of the sender beside it. Without vitest: bench uses it too.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';

export type Flood = {
  readonly kind: keyof typeof KINDS;
  readonly port: number;
  /** Source addresses of 127.0.0.0/8, used in turn. */
  readonly addresses: readonly string[];
  readonly connections: number;
  /** A connection that ends is opened again after so long; not again if undefined. */
  readonly reopenAfterMs?: number;
  readonly forMs: number;
  /** It ends earlier when so many answers have come. */
  readonly untilAnswers?: number;
  /** The length of a body, of which all but the last byte is sent. */
  readonly bodyBytes?: number;
};

export type FloodReport = {
  /** The most connections that were open at once and had sent their bytes. */
  readonly mostOpen: number;
  readonly opened: number;
  /** Closed or refused by the other side. */
  readonly closed: number;
  readonly answers: Readonly<Record<string, number>>;
};

type RunningFlood = AsyncDisposable & {
  /** Resolves when each connection was opened once and has sent its bytes. */
  readonly begun: Promise<void>;
  /** Resolves when it ends. */
  readonly report: Promise<FloodReport>;
};

/** The most that a server reads at once. */
const READ_BYTES = 64 * 1024;

const WELL_FORMED = `sha256=${'0'.repeat(64)}`;

const post = (headers: string) => `POST /webhooks HTTP/1.1\r\nHost: flood.test\r\n${headers}\r\n`;
const SIGNED_BODY = JSON.stringify({ job_id: 'flood', status: 'completed' });
const pipelined = Buffer.from(post('').repeat(Math.ceil((2 * READ_BYTES) / post('').length)));
const stalled = (signature: string, bodyBytes = 256 * 1024) =>
  Buffer.concat([
    Buffer.from(post(`${signature}Content-Length: ${bodyBytes}\r\n`)),
    Buffer.alloc(bodyBytes - 1, 'x'),
  ]);

/** The bytes that a connection sends, and when it sends them again. */
const KINDS = {
  /** Requests without a signature, as fast as they are read, without waiting for answers. */
  pipelining: { bytes: () => pipelined, again: 'drained' },
  /** One request that needs no token, and then nothing. */
  idle: { bytes: () => Buffer.from('GET /livez HTTP/1.1\r\nHost: flood.test\r\n\r\n'), again: 'never' },
  /** Nothing at all. */
  silent: { bytes: () => Buffer.alloc(0), again: 'never' },
  /** A body without its last byte, and without a signature. */
  unsigned: { bytes: ({ bodyBytes }: Flood) => stalled('', bodyBytes), again: 'never' },
  /** The same with a well-formed signature. */
  claimed: {
    bytes: ({ bodyBytes }: Flood) => stalled(`X-Service-Signature: ${WELL_FORMED}\r\n`, bodyBytes),
    again: 'never',
  },
  /** Whole deliveries with a well-formed, wrong signature, each after the answer to the one before. */
  refused: {
    bytes: () =>
      Buffer.from(
        `${post(`X-Service-Signature: ${WELL_FORMED}\r\nContent-Length: ${SIGNED_BODY.length}\r\n`)}${SIGNED_BODY}`,
      ),
    again: 'answered',
  },
} as const;

/** Starts a flood in a process of its own, which ends with it. */
export function startFlood(options: Flood): RunningFlood {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(options)], { execArgv: [] });
  const { promise: begun, resolve: onBegun, reject } = Promise.withResolvers<void>();
  const { promise: report, resolve: onReport, reject: onFailed } = Promise.withResolvers<FloodReport>();
  begun.catch(() => {});
  report.catch(() => {});
  child.on('message', (message: 'begun' | FloodReport) =>
    message === 'begun' ? onBegun() : onReport(message),
  );
  child.once('exit', () => {
    const error = new Error('the flood ended without a report');
    reject(error);
    onFailed(error);
  });
  return {
    begun,
    report,
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

/** Runs the flood in this process. */
async function flood(options: Flood, onBegun: () => void = () => {}): Promise<FloodReport> {
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const timer = setTimeout(end, options.forMs);
  const answers: Record<string, number> = {};
  const counts = { mostOpen: 0, opened: 0, closed: 0, begun: 0 };
  const open = new Set<Socket>();
  const { untilAnswers = Infinity } = options;
  const { bytes: bytesOf, again } = KINDS[options.kind];
  const bytes = bytesOf(options);
  let answered = 0;
  let isOver = false;

  function send(socket: Socket): void {
    if (again !== 'drained') return void socket.write(bytes, onSent);
    onSent();
    const more = () => {
      while (socket.writable && socket.write(bytes)) {}
    };
    socket.on('drain', more);
    more();
  }

  function onSent(): void {
    counts.begun += 1;
    counts.mostOpen = Math.max(counts.mostOpen, open.size);
    if (counts.begun === options.connections) onBegun();
  }

  function openOne(index: number): void {
    const localAddress = options.addresses[index % options.addresses.length] as string;
    const socket = connect({ port: options.port, host: '127.0.0.1', localAddress, noDelay: true });
    socket.on('connect', () => {
      counts.opened += 1;
      open.add(socket);
      send(socket);
    });
    socket.on('data', (chunk) => {
      for (const [, status = ''] of chunk.toString('latin1').matchAll(/HTTP\/1\.1 (\d{3})/g)) {
        answers[status] = (answers[status] ?? 0) + 1;
        answered += 1;
        if (again === 'answered') socket.write(bytes);
      }
      if (answered >= untilAnswers) end();
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      open.delete(socket);
      if (isOver) return;
      counts.closed += 1;
      if (options.reopenAfterMs !== undefined)
        setTimeout(() => !isOver && openOne(index), options.reopenAfterMs);
    });
  }

  for (let index = 0; index < options.connections; index++) openOne(index);
  await over;
  clearTimeout(timer);
  isOver = true;
  for (const socket of open) socket.destroy();
  const { mostOpen, opened, closed } = counts;
  return { mostOpen, opened, closed, answers };
}

if (import.meta.main) {
  const report = await flood(JSON.parse(process.argv[2] ?? '') as Flood, () => process.send?.('begun'));
  process.send?.(report, () => process.exit(0));
}
