// A TCP proxy that fails as networks do: it cuts or resets connections, refuses new ones, breaks in the middle of a
// handshake, is slow, or stalls while both sides believe that they are connected.

import { connect, createServer, type Socket } from 'node:net';
import { listenOn } from './origin.ts';

export type Proxy = AsyncDisposable & {
  /** The target's URL with the address of this proxy. */
  readonly url: string;
  readonly port: number;
  /** How many connections were made to the proxy so far. */
  readonly accepted: () => number;
  /** From now on nothing passes in either direction, on open and new connections. */
  readonly stall: () => void;
  /** Nothing passes any more on the open connections, as after a pulled cable; new ones work. */
  readonly silence: () => void;
  /** Closes every open connection on both sides. */
  readonly cut: () => void;
  /** Resets every open connection, on both sides. */
  readonly reset: () => void;
  /** Delays every byte by so much, in both directions and in order. 0 ends the delay. */
  readonly slow: (delayMs: number) => void;
  /** New connections are reset. */
  readonly refuse: () => void;
  /** Everything passes again, first the bytes that were stalled. */
  readonly heal: () => void;
  /** Each new connection fails once so many AMQP frames of the server have passed; 0 means at once. */
  readonly failAfterFrames: (frames: number, how: Failure) => void;
  /** The same after so many bytes of the server. */
  readonly failAfterBytes: (bytes: number, how: Failure) => void;
  /** The open connections stall once so many more AMQP frames of the server have passed. */
  readonly stallAfterFrames: (frames: number) => void;
};

type Failure = 'cut' | 'stall' | 'reset';

type Link = { readonly client: Socket; readonly server: Socket; plan: Plan | undefined; seen: number };
type Plan = { readonly unit: 'frames' | 'bytes'; readonly limit: number; readonly how: Failure };
type Count = (chunk: Buffer, limit: number) => { seen: number; end: number };

/** `counts`: the unit of the server's data after which a connection can be made to fail. `listen`: else on a free port. */
export async function startProxy(
  targetUrl: string,
  options: {
    defaultPort: number;
    counts?: 'frames' | 'bytes';
    listen?: { readonly host: string; readonly port: number };
  },
): Promise<Proxy> {
  const { counts = 'frames' } = options;
  const target = new URL(targetUrl);
  const links = new Set<Link>();
  const stalled = new Set<Link>();
  let isStalled = false;
  let isRefusing = false;
  let slowMs = 0;
  let plan: Plan | undefined;
  let accepted = 0;

  function pauseLink(link: Link): void {
    stalled.add(link);
    link.client.pause();
    link.server.pause();
  }

  function forget(link: Link): void {
    links.delete(link);
    stalled.delete(link);
  }

  function drop(link: Link): void {
    forget(link);
    link.client.destroy();
    link.server.destroy();
  }

  function resetBoth(link: Link): void {
    forget(link);
    link.client.resetAndDestroy();
    link.server.resetAndDestroy();
  }

  function failLink(link: Link, how: Failure): void {
    if (how === 'stall') pauseLink(link);
    else if (how === 'reset') resetBoth(link);
    // The bytes that passed must arrive before the end of the connection.
    else link.client.end(() => drop(link));
  }

  /** Writes at once or, while the proxy is slow, later and in order. */
  function passOn(to: Socket): (chunk: Buffer) => void {
    const waiting: Buffer[] = [];
    const next = () => {
      const chunk = waiting.shift();
      if (chunk !== undefined && !to.destroyed) to.write(chunk);
    };
    return (chunk) => {
      if (slowMs === 0 && waiting.length === 0) {
        to.write(chunk);
        return;
      }
      waiting.push(chunk);
      setTimeout(next, slowMs);
    };
  }

  function fail(how: Plan): void {
    if (how.unit !== counts) throw new Error(`this proxy counts ${counts}`);
    plan = how;
  }

  const server = createServer((client) => {
    accepted += 1;
    if (isRefusing) {
      client.resetAndDestroy();
      return;
    }
    const link: Link = {
      client,
      plan,
      seen: 0,
      server: connect({ host: target.hostname, port: Number(target.port) || options.defaultPort }),
    };
    links.add(link);
    const count = counts === 'frames' ? frameCounter() : byteCounter();
    const [toServer, toClient] = [passOn(link.server), passOn(client)];
    link.client.on('data', toServer);
    link.server.on('data', (chunk: Buffer) => {
      const { seen, end } = count(chunk, link.plan?.limit ?? Number.POSITIVE_INFINITY);
      link.seen = seen;
      toClient(chunk.subarray(0, end));
      if (link.plan !== undefined && seen >= link.plan.limit) failLink(link, link.plan.how);
    });
    for (const socket of [link.client, link.server]) {
      socket.setNoDelay(true);
      socket.on('error', () => drop(link));
      socket.on('close', () => drop(link));
    }
    if (isStalled || (plan?.limit === 0 && plan.how === 'stall')) pauseLink(link);
    else if (plan?.limit === 0) drop(link);
  });
  const port = await listenOn(server, options.listen);
  const url = new URL(targetUrl);
  url.hostname = options.listen?.host ?? '127.0.0.1';
  url.port = String(port);

  return {
    url: url.href,
    port,
    accepted: () => accepted,
    stall: () => {
      isStalled = true;
      for (const link of links) pauseLink(link);
    },
    silence: () => {
      for (const link of links) pauseLink(link);
    },
    cut: () => {
      for (const link of links) drop(link);
    },
    reset: () => {
      for (const link of links) resetBoth(link);
    },
    slow: (delayMs) => {
      slowMs = delayMs;
    },
    refuse: () => {
      isRefusing = true;
    },
    heal: () => {
      isStalled = false;
      isRefusing = false;
      slowMs = 0;
      plan = undefined;
      // Otherwise a kept connection could still fail after the fault.
      for (const link of links) link.plan = undefined;
      for (const link of stalled) {
        link.client.resume();
        link.server.resume();
      }
      stalled.clear();
    },
    failAfterFrames: (limit, how) => fail({ unit: 'frames', limit, how }),
    failAfterBytes: (limit, how) => fail({ unit: 'bytes', limit, how }),
    stallAfterFrames: (frames) => {
      for (const link of links) link.plan = { unit: 'frames', limit: link.seen + frames, how: 'stall' };
    },
    [Symbol.asyncDispose]: async () => {
      for (const link of links) drop(link);
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
    },
  };
}

/** Counts whole AMQP frames (7 bytes of head with the size, the payload, an end mark) across chunks. */
function frameCounter(): Count {
  let rest = Buffer.alloc(0);
  let seen = 0;
  return (chunk, limit) => {
    const before = rest.length;
    const bytes = Buffer.concat([rest, chunk]);
    let at = 0;
    while (seen < limit && bytes.length >= at + 7 && bytes.length >= at + 8 + bytes.readUInt32BE(at + 3)) {
      at += 8 + bytes.readUInt32BE(at + 3);
      seen += 1;
    }
    rest = bytes.subarray(at);
    return { seen, end: seen >= limit ? Math.max(0, at - before) : chunk.length };
  };
}

function byteCounter(): Count {
  let seen = 0;
  return (chunk, limit) => {
    const end = Math.max(0, Math.min(chunk.length, limit - seen));
    seen += end;
    return { seen, end };
  };
}
