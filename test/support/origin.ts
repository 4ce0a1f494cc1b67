// An HTTP server whose responses a test writes itself, also wrong ones.

import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Origin = AsyncDisposable & {
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
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
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
