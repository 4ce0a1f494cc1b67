// How a server starts to listen, and how it stops, also for connections that Node would leave open. Used by the service's
// servers and the sandbox's.

import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';

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
 * How long a stop goes on accepting connections, at most. A connection that the system has accepted, and that is still in its
 * queue when the listening socket closes, is reset, with the request that its sender had sent. A turn of the event loop takes one
 * from the queue (libuv), so it is empty within milliseconds, or within this time if turns take 20 ms and 40 were waiting. Less
 * than the second after which clients repeat what the system did not take: these would come in bursts.
 */
const ACCEPT_MS = 900;
/** The queue counts as empty after so many turns of the event loop without a connection. */
const EMPTY_TURNS = 2;
/** How long a stop waits for the first byte on a new connection. It comes at once, or 0.2 to 0.3 s later if a packet was lost. */
const FIRST_BYTE_MS = 1_000;
/** How often a stop looks for connections that are idle now. */
const SWEEP_MS = 50;

/**
 * Returns a function that stops the server: it takes the connections that are there, with a request on each, then accepts no more,
 * and resolves when the last one is gone. After `graceMs` the rest are cut. Each answer from then on ends its connection. Safe to
 * call twice.
 */
export function createStop(server: Server): (graceMs: number) => Promise<void> {
  let stopping: Promise<void> | undefined;
  let accepted = 0;
  const unused = new Map<Socket, number>(); // when they came; without a request so far: Node does not count them as idle
  server.on('connection', (socket: Socket) => {
    accepted += 1;
    unused.set(socket, performance.now());
    socket.once('close', () => unused.delete(socket));
  });
  server.on('drop', () => (accepted += 1)); // there was no room for it, but the queue had it
  server.prependListener('request', ({ socket }, response) => {
    unused.delete(socket);
    if (stopping !== undefined) response.setHeader('Connection', 'close');
  });

  async function acceptRest(limitMs: number): Promise<void> {
    const untilMs = performance.now() + limitMs;
    for (let empty = 0; empty < EMPTY_TURNS; ) {
      // With one in the queue at most, the moment after it was taken is the best one to close.
      if (performance.now() >= untilMs)
        return void (await Promise.race([once(server, 'connection'), nextTurn()]));
      const before = accepted;
      await nextTurn();
      empty = accepted === before ? empty + 1 : 0;
    }
  }

  function closeIdle(): void {
    server.closeIdleConnections();
    const overdueMs = performance.now() - FIRST_BYTE_MS;
    for (const [socket, sinceMs] of unused) {
      if (sinceMs <= overdueMs && socket.bytesRead === 0) socket.destroy();
    }
  }

  async function stop(graceMs: number): Promise<void> {
    const cut = setTimeout(() => server.closeAllConnections(), graceMs);
    queueNoMore(server);
    await acceptRest(Math.min(ACCEPT_MS, graceMs));
    const closed = once(server, 'close');
    server.close();
    // A kept-alive connection becomes idle after its last answer, which may go out only now.
    const sweep = setInterval(closeIdle, SWEEP_MS);
    closeIdle();
    await closed.finally(() => {
      clearTimeout(cut);
      clearInterval(sweep);
    });
  }

  return (graceMs) => (stopping ??= stop(graceMs));
}

type Handle = { readonly listen?: (backlog: number) => number };

/**
 * From now on the system queues no connection behind another one: it drops the client's first packet. The client repeats it after a
 * second, and is refused then, before it has sent a request. `_handle` is internal to Node and not documented. If it is missing, a
 * stop resets more connections when they come faster than turns of the event loop.
 */
function queueNoMore(server: Server): void {
  const { _handle: handle } = server as Server & { readonly _handle?: Handle | null };
  handle?.listen?.(0);
}
