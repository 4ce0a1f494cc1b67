// A TCP proxy that can go wrong in the ways that networks do: cut connections, refuse new ones, or hold every
// byte back while both sides believe that they are connected.

import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

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
  /** New connections are reset. */
  readonly refuse: () => void;
  /** Everything passes again, what was held back first. */
  readonly heal: () => void;
  /** Each connection goes wrong as soon as so many AMQP frames of the server have passed; 0 is at once. */
  readonly failAfterFrames: (frames: number, how: 'cut' | 'stall') => void;
  /** The connections that are open now stall as soon as so many more AMQP frames of the server have passed. */
  readonly stallAfterFrames: (frames: number) => void;
};

type Link = { readonly client: Socket; readonly server: Socket; plan: Plan | undefined; seen: number };
type Plan = { readonly frames: number; readonly how: 'cut' | 'stall' };

export async function startProxy(targetUrl: string, options: { defaultPort: number }): Promise<Proxy> {
  const target = new URL(targetUrl);
  const links = new Set<Link>();
  const stalled = new Set<Link>();
  let isStalled = false;
  let isRefusing = false;
  let plan: Plan | undefined;
  let accepted = 0;

  function hold(link: Link): void {
    stalled.add(link);
    link.client.pause();
    link.server.pause();
  }

  function drop(link: Link): void {
    links.delete(link);
    stalled.delete(link);
    link.client.destroy();
    link.server.destroy();
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
    const countFrames = frameCounter();
    link.client.on('data', (chunk: Buffer) => link.server.write(chunk));
    link.server.on('data', (chunk: Buffer) => {
      const { seen, end } = countFrames(chunk, link.plan?.frames ?? Number.POSITIVE_INFINITY);
      link.seen = seen;
      client.write(chunk.subarray(0, end));
      if (link.plan === undefined || seen < link.plan.frames) return;
      if (link.plan.how === 'stall') hold(link);
      // What was let through must arrive before the end does.
      else client.end(() => drop(link));
    });
    for (const socket of [link.client, link.server]) {
      socket.setNoDelay(true);
      socket.on('error', () => drop(link));
      socket.on('close', () => drop(link));
    }
    if (isStalled || (plan?.frames === 0 && plan.how === 'stall')) hold(link);
    else if (plan?.frames === 0) drop(link);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
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
    refuse: () => {
      isRefusing = true;
    },
    heal: () => {
      isStalled = false;
      isRefusing = false;
      plan = undefined;
      for (const link of stalled) {
        link.client.resume();
        link.server.resume();
      }
      stalled.clear();
    },
    failAfterFrames: (frames, how) => {
      plan = { frames, how };
    },
    stallAfterFrames: (frames) => {
      for (const link of links) link.plan = { frames: link.seen + frames, how: 'stall' };
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
function frameCounter(): (chunk: Buffer, limit: number) => { seen: number; end: number } {
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
