// Free ports. Chosen at random below the range that systems hand out for outgoing connections, so that between
// the choice and the use only another chooser like this one could take it; who finds it taken tries again.

import { once } from 'node:events';
import { createConnection, createServer } from 'node:net';
import { randomInt } from 'node:crypto';

// Linux hands out 32768 and up, macOS 49152 and up; well-known services keep mostly below 10000.
const LOWEST_PORT = 18_000;
const HIGHEST_PORT = 32_000;

/** On some systems a port can be bound on one address while another one has it. */
const ADDRESSES = ['0.0.0.0', '127.0.0.1', '::'];

/** `preferred` if it is free, otherwise any that is. */
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
    // A machine without IPv6 is no machine without ports.
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
