// The control connection between the benchmark and each of its parts: JSON lines over loopback. Parts are processes of their
// own, which the guard starts without a channel. A part that loses the connection ends.

import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { once as onceEmitted } from 'node:events';
import type { AddressInfo } from 'node:net';

/** `kind` decides what `value` is; the modules of both sides have the types. */
type Line = { readonly kind: string; readonly value?: unknown };

export type Control = {
  readonly tell: (kind: string, value?: unknown) => void;
  /** Listens to every line of that kind from now on. Replaces an earlier listener. */
  readonly on: (kind: string, listen: (value: unknown) => void) => void;
  /** The next line of that kind, or one that came earlier and was not read. */
  readonly once: (kind: string) => Promise<unknown>;
};

/** The longest line is the report of a run. One above this is an error. */
const LINE_MAX_BYTES = 64 * 1024 * 1024;
/** Lines that came and were not read yet. */
const KEPT_MAX = 100;
const CONNECT_TIMEOUT_MS = 5_000;

/** In a part: connects to the benchmark, which started it as `<script> <control port> <token>`. */
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
  /** Resolves when the part with this token has connected. */
  readonly expect: (token: string) => Promise<Control & { readonly lost: Promise<void> }>;
  readonly close: () => Promise<void>;
};

/** In the benchmark: the server that parts connect to. */
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
