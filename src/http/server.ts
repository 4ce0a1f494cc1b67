// An HTTP server with every time-out and limit set, and an end that drops no request: it tells kept-alive
// connections to close with their next answer, stops listening, and waits for the answers under way.

import { createServer, type RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { createStop, listen } from './lifecycle.ts';
import type { Connections } from './connections.ts';
import {
  answerProtocolErrors,
  closeAfter,
  refuseExpectation,
  refuseWithoutHost,
  type StandingHeaders,
} from './errors.ts';
import { createTurns, MAX_UNDER_WAY, stopParsingUnless } from './pipelining.ts';

export type HttpServer = {
  readonly port: number;
  /**
   * From now on each connection ends with its last answer under way, and takes no request beside one that is. One that is
   * idle takes one more. It still listens.
   */
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
/** How often `connections` looks for those that were idle too long: as often as Node for overdue requests. */
const SWEEP_INTERVAL_MS = 1_000;
/** Above the limit that `connections` keeps: it makes room, and that needs the new one to be there. */
const BACK_STOP = 64;

/** Listens on `port`; 0 takes a free one. Rejects when the port is taken. */
export async function startServer(options: {
  listener: RequestListener;
  host: string;
  port: number;
  connections: Connections;
  maxConnections: number;
  /** For answers that `listener` has no part in. None, if not given. */
  standingHeaders?: StandingHeaders;
}): Promise<HttpServer> {
  const { connections, listener, standingHeaders = async () => ({}) } = options;
  let draining = false;
  const server = createServer({
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    noDelay: true,
    requireHostHeader: false, // we do, in words of our own
  });
  server.maxConnections = options.maxConnections + BACK_STOP;
  server.on('drop', () => connections.note('full'));
  server.on('connection', (socket) => {
    if (!connections.admit(socket)) return;
    stopParsingUnless(socket, () => {
      if (hasRoom(socket)) return true;
      if (!draining) connections.note('pipelined');
      return false;
    });
  });

  const hasRoom = (socket: Socket) => connections.countUnderWay(socket) < (draining ? 1 : MAX_UNDER_WAY);

  const inTurn = createTurns();
  /** One request of each connection is served at once; what is pipelined behind it lets those of others go first. */
  const taking =
    (serve: RequestListener): RequestListener =>
    (request, response) => {
      const { socket } = request;
      // Where the parser could not be stopped.
      if (!hasRoom(socket)) {
        return closeAfter(connections.underWay(socket).at(-1), socket);
      }
      if (draining) response.setHeader('Connection', 'close');
      if (connections.begin(response) <= 1) return serve(request, response);
      inTurn(() => {
        if (!socket.destroyed) serve(request, response);
      });
    };
  server.on(
    'request',
    taking((request, response) => {
      if (!refuseWithoutHost(request, response, standingHeaders)) listener(request, response);
    }),
  );
  server.on(
    'checkExpectation',
    taking((_request, response) => refuseExpectation(response, standingHeaders)),
  );
  answerProtocolErrors(server, { underWay: connections.underWay, standing: standingHeaders });
  const port = await listen(server, options);
  const end = createStop(server);
  const sweeping = setInterval(connections.sweep, SWEEP_INTERVAL_MS).unref();
  server.once('close', () => clearInterval(sweeping));

  function drain(): void {
    draining = true;
    // Those before it are to be answered, too.
    for (const last of connections.lastAnswers()) {
      if (!last.headersSent) last.setHeader('Connection', 'close');
    }
  }

  function stop(graceMs: number): Promise<void> {
    drain();
    return end(graceMs);
  }

  return { port, drain, stop };
}
