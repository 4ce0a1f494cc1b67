// The line between the benchmark and each of its parts: JSON lines over loopback. What is measured runs in
// processes of its own, and the guard starts them without a channel; this is it. A part that loses the line ends.

import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { once as onceEmitted } from 'node:events';
import type { AddressInfo } from 'node:net';

/** Whatever the two sides agreed on under that name; each side's own module has the types. */
type Line = { readonly kind: string; readonly value?: unknown };

export type Control = {
  readonly tell: (kind: string, value?: unknown) => void;
  /** For every line of that kind from now on; replaces an earlier listener. */
  readonly on: (kind: string, listen: (value: unknown) => void) => void;
  /** The next line of that kind, one that came before we asked included. */
  readonly once: (kind: string) => Promise<unknown>;
};

/** A line is a report of one run at most; beyond this something is wrong. */
const LINE_MAX_BYTES = 64 * 1024 * 1024;
/** Lines that came before anybody asked for them. */
const KEPT_MAX = 100;
const CONNECT_TIMEOUT_MS = 5_000;

/** In a part: connects to the benchmark that started it, as `<script> <control port> <token>`. */
export async function connectToBenchmark(argv: readonly string[] = process.argv.slice(2)): Promise<Control> {
  const [port = '', token = ''] = argv;
  const socket = createConnection({ port: Number(port), host: '127.0.0.1', noDelay: true });
  socket.setTimeout(CONNECT_TIMEOUT_MS, () => socket.destroy(new Error('the benchmark does not answer')));
  await onceEmitted(socket, 'connect');
  socket.setTimeout(0);
  const control = talkOver(socket);
  control.tell('part', token);
  socket.on('close', () => process.exit(1));
  process.on('uncaughtException', (error) => {
    socket.end(`${JSON.stringify({ kind: 'failed', value: error.stack ?? error.message })}\n`, () =>
      process.exit(1),
    );
  });
  return control;
}

type Switchboard = {
  readonly port: number;
  /** Resolves when the part with this token is on the line. */
  readonly expect: (token: string) => Promise<Control & { readonly lost: Promise<void> }>;
  readonly close: () => Promise<void>;
};

/** In the benchmark: where parts connect to. */
export async function openSwitchboard(): Promise<Switchboard> {
  const expected = new Map<string, (socket: Socket, control: Control) => void>();
  const sockets = new Set<Socket>();
  const server: Server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    const control = talkOver(socket);
    control.on('part', (token) => {
      expected.get(String(token))?.(socket, control);
      expected.delete(String(token));
    });
  });
  server.listen(0, '127.0.0.1');
  await onceEmitted(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    expect: (token) =>
      new Promise((resolve) => {
        expected.set(token, (socket, control) => {
          const lost = new Promise<void>((ended) => socket.once('close', () => ended()));
          resolve({ ...control, lost });
        });
      }),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await onceEmitted(server, 'close');
    },
  };
}

function talkOver(socket: Socket): Control {
  const listeners = new Map<string, (value: unknown) => void>();
  let kept: Line[] = [];
  let pending = '';
  socket.setEncoding('utf8');
  socket.on('data', (text: string) => {
    const lines = (pending + text).split('\n');
    pending = lines.pop() ?? '';
    if (pending.length > LINE_MAX_BYTES) socket.destroy(new Error('a line without an end'));
    for (const line of lines) {
      const { kind, value } = JSON.parse(line) as Line;
      const listen = listeners.get(kind);
      if (listen !== undefined) listen(value);
      else kept = [...kept.slice(1 - KEPT_MAX), { kind, value }];
    }
  });

  function on(kind: string, listen: (value: unknown) => void): void {
    listeners.set(kind, listen);
    const early = kept.filter((line) => line.kind === kind);
    kept = kept.filter((line) => line.kind !== kind);
    for (const { value } of early) listen(value);
  }

  function once(kind: string): Promise<unknown> {
    const early = kept.find((line) => line.kind === kind);
    kept = kept.filter((line) => line !== early);
    if (early !== undefined) return Promise.resolve(early.value);
    return new Promise((resolve) => {
      listeners.set(kind, (value) => {
        listeners.delete(kind);
        resolve(value);
      });
    });
  }

  return { tell: (kind, value) => void socket.write(`${JSON.stringify({ kind, value })}\n`), on, once };
}
