// How a server begins and ends, and how a connection does, where Node alone would leave something open. For the service's
// faces and the sandbox's.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** After the last word on a connection its other side has so long to hang up; then we do. */
const LINGER_MS = 1_000;

/**
 * Connections that wait to be taken in: what Linux allows by default. At Node's 511 a burst of strangers overflows it, and an
 * honest connection waits a second or three for its next try.
 */
const BACKLOG = 4_096;

/** On `port`; 0 takes a free one. @returns the port. Rejects when it is taken. */
export async function listen(
  server: Server,
  { host, port }: { host: string; port: number },
): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, BACKLOG, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return (server.address() as AddressInfo).port;
}

/**
 * Takes no more, and resolves when the last connection is gone; those that outlive `graceMs` are cut. What is returned
 * is safe to call twice.
 */
export function createStop(server: Server): (graceMs: number) => Promise<void> {
  let stopping: Promise<void> | undefined;
  const unused = new Set<Socket>(); // connected ahead of a request that never came: Node does not call that idle
  server.on('connection', (socket: Socket) => {
    unused.add(socket);
    socket.once('close', () => unused.delete(socket));
  });
  server.on('request', ({ socket }) => unused.delete(socket));
  return (graceMs) => {
    stopping ??= new Promise((resolve) => {
      const cut = setTimeout(() => server.closeAllConnections(), graceMs);
      // A kept-alive connection whose last answer goes out only now is idle afterwards, and would linger.
      const sweep = setInterval(() => {
        server.closeIdleConnections();
        for (const socket of unused) if (socket.bytesRead === 0) socket.destroy();
      }, 50);
      server.close(() => {
        clearTimeout(cut);
        clearInterval(sweep);
        resolve();
      });
      server.closeIdleConnections();
    });
    return stopping;
  };
}

/** Without this Node would take in the rest of an unread body, for as long as it comes. */
export function closeIfUnread(request: IncomingMessage, response: ServerResponse): void {
  const { 'transfer-encoding': encoding, 'content-length': length } = request.headers;
  const hasBody = encoding !== undefined || Number(length ?? 0) > 0;
  if (hasBody && !request.complete) response.setHeader('Connection', 'close');
}

/** The last word on a connection whose request Node could not even parse: `answer` as JSON. */
export function hangUp(
  socket: Duplex,
  { status, answer, headers = {} }: { status: number; answer: object; headers?: Record<string, string> },
): void {
  const body = JSON.stringify(answer);
  const all = {
    ...headers,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
  // Half-open, it would hold one of our connections for as long as the other side likes.
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
}
