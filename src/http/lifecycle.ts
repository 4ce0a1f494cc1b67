// How a server starts to listen, and how it stops, also for connections that Node would leave open. Used by the service's
// servers and the sandbox's.

import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/**
 * Connections that the system accepts ahead of us: what Linux allows by default. A burst of strangers overflows Node's default
 * of 511, and an honest client then waits one to three seconds for its next attempt.
 */
const BACKLOG = 4_096;

/** Listens on `port`; 0 takes a free one. @returns the port. Rejects when it is taken. */
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
 * Returns a function that stops the server: it accepts no more connections, and resolves when the last one is gone. After
 * `graceMs` the rest are cut. Safe to call twice.
 */
export function createStop(server: Server): (graceMs: number) => Promise<void> {
  let stopping: Promise<void> | undefined;
  const unused = new Set<Socket>(); // without a request so far: Node does not count them as idle
  server.on('connection', (socket: Socket) => {
    unused.add(socket);
    socket.once('close', () => unused.delete(socket));
  });
  server.on('request', ({ socket }) => unused.delete(socket));
  return (graceMs) => {
    stopping ??= new Promise((resolve) => {
      const cut = setTimeout(() => server.closeAllConnections(), graceMs);
      // A kept-alive connection becomes idle after its last answer, which may go out only now.
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
