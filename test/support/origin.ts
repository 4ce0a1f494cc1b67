// Servers of a test's own on loopback: any on a free port, and one for HTTP that does what a well-behaved one would not.

import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Server } from 'node:net';

type Origin = AsyncDisposable & {
  readonly port: number;
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  /** Method and path of each request. */
  readonly asked: readonly string[];
  /** The number of connections, with or without a request. */
  readonly connections: () => number;
};

export async function startOrigin(
  listener: (...exchange: Parameters<RequestListener>) => unknown,
): Promise<Origin> {
  const asked: string[] = [];
  let connections = 0;
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    void listener(request, response);
  });
  server.on('connection', () => {
    connections += 1;
  });
  const port = await listenOnFreePort(server);
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    asked,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Resolves with the port when the server listens. */
export const listenOnFreePort = (server: Server): Promise<number> => listenOn(server);

/** The same on a given address. @throws Error if it is taken */
export async function listenOn(
  server: Server,
  address: { readonly host: string; readonly port: number } = { host: '127.0.0.1', port: 0 },
): Promise<number> {
  server.listen(address);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}
