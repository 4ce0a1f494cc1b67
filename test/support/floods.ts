// Floods of clients without a secret, on bare sockets: each bounded in connections and time, and ends by itself. Runs in a
// process of its own, so that the sender beside it keeps its event loop. Knows nothing of vitest.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';

export type Flood = {
  readonly kind: keyof typeof KINDS;
  readonly port: number;
  /** Of 127.0.0.0/8, taken in turn. */
  readonly addresses: readonly string[];
  readonly connections: number;
  /** One that ends is opened again after so long, while the flood lasts. Not given, it is not. */
  readonly reopenAfterMs?: number;
  readonly forMs: number;
  /** Of a body: all but its last byte is sent. */
  readonly bodyBytes?: number;
};

export type FloodReport = {
  /** The most that were open at a time, and had said what they had to say. */
  readonly mostOpen: number;
  readonly opened: number;
  /** Closed by the other side, or never let in. */
  readonly closed: number;
  readonly answers: Readonly<Record<string, number>>;
};

type RunningFlood = AsyncDisposable & {
  /** Resolves when each connection was opened once and has said what it had to say. */
  readonly begun: Promise<void>;
  /** Resolves at its end. */
  readonly report: Promise<FloodReport>;
};

/** What one read of a server takes in. */
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

/** What a connection says, and when it says it again. */
const KINDS = {
  /** Requests without a signature, as fast as they are taken, and no answer waited for. */
  pipelining: { says: () => pipelined, again: 'drained' },
  /** One request that anybody may make, and then silence. */
  idle: { says: () => Buffer.from('GET /livez HTTP/1.1\r\nHost: flood.test\r\n\r\n'), again: 'never' },
  /** Not even that. */
  silent: { says: () => Buffer.alloc(0), again: 'never' },
  /** A body that lacks its last byte. */
  unsigned: { says: ({ bodyBytes }: Flood) => stalled('', bodyBytes), again: 'never' },
  claimed: {
    says: ({ bodyBytes }: Flood) => stalled(`X-Service-Signature: ${WELL_FORMED}\r\n`, bodyBytes),
    again: 'never',
  },
  /** Whole deliveries under a signature that could match and does not, each when the one before was answered. */
  refused: {
    says: () =>
      Buffer.from(
        `${post(`X-Service-Signature: ${WELL_FORMED}\r\nContent-Length: ${SIGNED_BODY.length}\r\n`)}${SIGNED_BODY}`,
      ),
    again: 'answered',
  },
} as const;

/** Starts a flood in a process of its own, which ends with it. */
export function startFlood(wish: Flood): RunningFlood {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(wish)], { execArgv: [] });
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

/** The flood itself, in this process. */
async function flood(wish: Flood, onBegun: () => void = () => {}): Promise<FloodReport> {
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const timer = setTimeout(end, wish.forMs);
  const answers: Record<string, number> = {};
  const counts = { mostOpen: 0, opened: 0, closed: 0, begun: 0 };
  const open = new Set<Socket>();
  const { says, again } = KINDS[wish.kind];
  const bytes = says(wish);
  let isOver = false;

  function say(socket: Socket): void {
    if (again !== 'drained') return void socket.write(bytes, onSaid);
    onSaid();
    const more = () => {
      while (socket.writable && socket.write(bytes)) {}
    };
    socket.on('drain', more);
    more();
  }

  function onSaid(): void {
    counts.begun += 1;
    counts.mostOpen = Math.max(counts.mostOpen, open.size);
    if (counts.begun === wish.connections) onBegun();
  }

  function openOne(index: number): void {
    const localAddress = wish.addresses[index % wish.addresses.length] as string;
    const socket = connect({ port: wish.port, host: '127.0.0.1', localAddress, noDelay: true });
    socket.on('connect', () => {
      counts.opened += 1;
      open.add(socket);
      say(socket);
    });
    socket.on('data', (chunk) => {
      for (const [, status = ''] of chunk.toString('latin1').matchAll(/HTTP\/1\.1 (\d{3})/g)) {
        answers[status] = (answers[status] ?? 0) + 1;
        if (again === 'answered') socket.write(bytes);
      }
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      open.delete(socket);
      if (isOver) return;
      counts.closed += 1;
      if (wish.reopenAfterMs !== undefined) setTimeout(() => !isOver && openOne(index), wish.reopenAfterMs);
    });
  }

  for (let index = 0; index < wish.connections; index++) openOne(index);
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
