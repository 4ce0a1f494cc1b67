// Finds free ports, at random below the range that systems use for outgoing connections. So only another such choice can take
// a port between our choice and its use: then the caller tries again.

import { once } from 'node:events';
import { createConnection, createServer } from 'node:net';
import { randomInt } from 'node:crypto';

// Linux uses 32768 and up for outgoing connections, macOS 49152 and up. Well-known services are mostly below 10000.
const LOWEST_PORT = 18_000;
const HIGHEST_PORT = 32_000;

/** All of them are tried: on some systems a port can be bound on one address while it is in use on another. */
const ADDRESSES = ['0.0.0.0', '127.0.0.1', '::'];

/** `preferred` if it is free, or else any free one. */
export async function findFreePort(preferred?: number): Promise<number> {
  if (preferred !== undefined && (await isFree(preferred))) return preferred;
  for (;;) {
    const port = randomInt(LOWEST_PORT, HIGHEST_PORT);
    if (await isFree(port)) return port;
  }
}

export async function isFree(port: number): Promise<boolean> {
  for (const address of ADDRESSES) if (!(await canListen(port, address))) return false;
  return true;
}

async function canListen(port: number, host: string): Promise<boolean> {
  const server = createServer();
  try {
    server.listen({ port, host, exclusive: true, ipv6Only: host === '::' });
    await once(server, 'listening');
    return true;
  } catch (error) {
    // A machine without IPv6 cannot bind `::`, and its ports are free all the same.
    return (error as NodeJS.ErrnoException).code !== 'EADDRINUSE' && host === '::';
  } finally {
    server.close();
  }
}

/** Whether something on this machine takes connections there. */
export async function answers(port: number): Promise<boolean> {
  const socket = createConnection({ port, host: '127.0.0.1' });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
