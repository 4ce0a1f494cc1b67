// An HTTP server with every time-out and limit set, and an end that drops no request: it tells kept-alive
// connections to close with their next answer, stops listening, and waits for the answers under way.

import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { createStop, listen } from '../http-ground.ts';
import { answerProtocolErrors, refuseWithoutHost, type StandingHeaders } from './errors.ts';

export type HttpServer = {
  readonly port: number;
  /** From now on each answer ends its connection, also those under way. It still listens. */
  readonly drain: () => void;
  /** Resolves when the last connection is gone. Connections that outlive `graceMs` are cut. Safe to call twice. */
  readonly stop: (graceMs: number) => Promise<void>;
};

/** The head of a request is small: a sender that needs longer is none. */
const HEADERS_TIMEOUT_MS = 5_000;
/** Beyond the sender's own 10 s nobody waits for the answer. The body has a shorter limit of its own. */
const REQUEST_TIMEOUT_MS = 12_000;
/** Longer than the 60 s of common balancers: whoever closes first must not be us, or a request is lost. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
/** Node looks for overdue requests only so often; its default of 30 s would make 5 s mean 30. */
const CHECK_INTERVAL_MS = 1_000;
const MAX_HEADER_BYTES = 16 * 1024;

/** Listens on `port`; 0 takes a free one. Rejects when the port is taken. */
export async function startServer(options: {
  listener: RequestListener;
  host: string;
  port: number;
  maxConnections: number;
  /** For answers that `listener` has no part in. None, if not given. */
  standingHeaders?: StandingHeaders;
}): Promise<HttpServer> {
  const { standingHeaders = async () => ({}) } = options;
  let draining = false;
  const underWay = new Set<ServerResponse>();
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      noDelay: true,
      requireHostHeader: false, // we do, in words of our own
    },
    (request, response) => {
      if (draining) response.setHeader('Connection', 'close');
      underWay.add(response);
      response.once('close', () => underWay.delete(response));
      if (!refuseWithoutHost(request, response, standingHeaders)) options.listener(request, response);
    },
  );
  server.maxConnections = options.maxConnections;
  answerProtocolErrors(server, standingHeaders);
  const port = await listen(server, options);
  const end = createStop(server);

  function drain(): void {
    draining = true;
    for (const response of underWay) {
      if (!response.headersSent) response.setHeader('Connection', 'close');
    }
  }

  function stop(graceMs: number): Promise<void> {
    drain();
    return end(graceMs);
  }

  return { port, drain, stop };
}
