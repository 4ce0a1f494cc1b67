// A TCP proxy that can go wrong in the ways that networks do: cut or reset connections, refuse new ones, break in the
// middle of a handshake, be slow, or hold every byte back while both sides believe that they are connected.

import { connect, createServer, type Socket } from 'node:net';
import { listenOnFreePort } from './origin.ts';

export type Proxy = AsyncDisposable & {
  /** The target's URL with this proxy's address in it. */
  readonly url: string;
  readonly port: number;
  /** Connections that were ever made to us. */
  readonly accepted: () => number;
  /** From now on nothing passes, in either direction, on old connections and new ones alike. */
  readonly stall: () => void;
  /** The connections that are open now go silent for good, as after a pulled cable; new ones pass. */
  readonly silence: () => void;
  /** Ends every open connection, without a word. */
  readonly cut: () => void;
  /** Resets every open connection, on both sides. */
  readonly reset: () => void;
  /** Whatever passes is so much later, in both directions and in order. 0 is as it was. */
  readonly slow: (delayMs: number) => void;
  /** New connections are reset. */
  readonly refuse: () => void;
  /** Everything passes again, what was held back first. */
  readonly heal: () => void;
  /** Each connection goes wrong as soon as so many AMQP frames of the server have passed; 0 is at once. */
  readonly failAfterFrames: (frames: number, how: Mishap) => void;
  /** The same after so many bytes of the server, whatever they mean. */
  readonly failAfterBytes: (bytes: number, how: Mishap) => void;
  /** The connections that are open now stall as soon as so many more AMQP frames of the server have passed. */
  readonly stallAfterFrames: (frames: number) => void;
};

type Mishap = 'cut' | 'stall' | 'reset';

type Link = { readonly client: Socket; readonly server: Socket; plan: Plan | undefined; seen: number };
type Plan = { readonly unit: 'frames' | 'bytes'; readonly limit: number; readonly how: Mishap };
type Count = (chunk: Buffer, limit: number) => { seen: number; end: number };

/** `counts` says what the server's bytes are counted in, by which a connection can be told to go wrong. */
export async function startProxy(
  targetUrl: string,
  options: { defaultPort: number; counts?: 'frames' | 'bytes' },
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

  function hold(link: Link): void {
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

  function goWrong(link: Link, how: Mishap): void {
    if (how === 'stall') hold(link);
    else if (how === 'reset') resetBoth(link);
    // What was let through must arrive before the end does.
    else link.client.end(() => drop(link));
  }

  /** Writes at once, or, while it is slow, later and in order. */
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
      if (link.plan !== undefined && seen >= link.plan.limit) goWrong(link, link.plan.how);
    });
    for (const socket of [link.client, link.server]) {
      socket.setNoDelay(true);
      socket.on('error', () => drop(link));
      socket.on('close', () => drop(link));
    }
    if (isStalled || (plan?.limit === 0 && plan.how === 'stall')) hold(link);
    else if (plan?.limit === 0) drop(link);
  });
  const port = await listenOnFreePort(server);
  const url = new URL(targetUrl);
  url.hostname = '127.0.0.1';
  url.port = String(port);

  return {
    url: url.href,
    port,
    accepted: () => accepted,
    stall: () => {
      isStalled = true;
      for (const link of links) hold(link);
    },
    silence: () => {
      for (const link of links) hold(link);
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
      // A connection that is kept alive would carry its mishap beyond the fault.
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
