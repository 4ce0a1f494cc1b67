// An HTTP server with every time-out and limit set, also for pipelined requests, and with a stop that drops no request: it
// tells kept-alive connections to close with their next answer, stops listening, and waits for the answers under way.

import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { peerAddress } from './address.ts';
import type { Connections } from './connections.ts';
import {
  answerProtocolErrors,
  closeAfter,
  rejectExpectation,
  rejectWithoutHost,
  type StandingHeaders,
} from './errors.ts';
import { createStop, listen } from './lifecycle.ts';
import type { Unparsed } from './unparsed.ts';

export type HttpServer = {
  readonly port: number;
  /**
   * From now on each connection ends with its last answer under way, and takes no further request until then. An idle one
   * takes one more. The server still listens.
   */
  readonly drain: () => void;
  /** Resolves when the last connection is gone. Connections that outlive `graceMs` are cut. Safe to call twice. */
  readonly stop: (graceMs: number) => Promise<void>;
};

/** Heads are small: an honest sender needs milliseconds. */
export const HEADERS_TIMEOUT_MS = 5_000;
/** The sender itself waits for 10 s. The body has a shorter limit of its own. */
const REQUEST_TIMEOUT_MS = 12_000;
/** Longer than the 60 s of common balancers: if we closed first, a request on its way would be lost. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
/** How often Node looks for overdue requests. Its default of 30 s would turn 5 s into 30. */
const CHECK_INTERVAL_MS = 1_000;
export const MAX_HEADER_BYTES = 16 * 1024;
/** How often `connections` looks for idle ones: as often as Node for overdue requests. */
const SWEEP_INTERVAL_MS = 1_000;
/** Node's limit is above that of `connections`, which has to see a new connection to make room for it. */
const SPARE_CONNECTIONS = 64;
/** Of one connection at a time. Senders that pipeline at all have a handful; each costs some kilobytes until its answer. */
const MAX_UNDER_WAY = 16;
/**
 * Pipelined requests that begin in one turn of the event loop. A refusal takes some 60 µs, so this many take a millisecond. The
 * loop takes in no more than one new connection a turn.
 */
const BEGUN_A_TURN = 16;

/** Listens on `port`; 0 takes a free one. Rejects when the port is taken. */
export async function startServer(options: {
  listener: RequestListener;
  host: string;
  port: number;
  connections: Connections;
  maxConnections: number;
  /** Is told of requests that no listener sees. */
  unparsed: Unparsed;
  /** For answers that `listener` does not write. None by default. */
  standingHeaders?: StandingHeaders;
}): Promise<HttpServer> {
  const { connections, listener, unparsed, standingHeaders = async () => ({}) } = options;
  let draining = false;
  const server = createServer({
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    noDelay: true,
    requireHostHeader: false, // `rejectWithoutHost` does, with a body
  });
  server.maxConnections = options.maxConnections + SPARE_CONNECTIONS;
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
  /** The first request of each connection is served at once. Those pipelined behind it wait for those of others. */
  const taking =
    (serve: RequestListener): RequestListener =>
    (request, response) => {
      const { socket } = request;
      // Only where the parser could not be stopped.
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
      if (rejectWithoutHost(request, response, standingHeaders)) {
        unparsed.note('no_host', peerAddress(request.socket));
      } else listener(request, response);
    }),
  );
  server.on(
    'checkExpectation',
    taking(({ socket }, response) => {
      unparsed.note('expectation', peerAddress(socket));
      rejectExpectation(response, standingHeaders);
    }),
  );
  answerProtocolErrors(server, {
    underWay: connections.underWay,
    standing: standingHeaders,
    unparsed: unparsed.note,
  });
  const port = await listen(server, options);
  const end = createStop(server);
  const sweeping = setInterval(connections.sweep, SWEEP_INTERVAL_MS).unref();
  server.once('close', () => clearInterval(sweeping));

  function drain(): void {
    draining = true;
    // Only the last one closes the connection, since those before it are to be answered, too.
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

type Parser = { onIncoming?: (request: IncomingMessage, shouldKeepAlive: boolean) => number };

/** Makes llhttp stop with an error of its callback. 0 to 2 and 21 mean other things. */
const FAIL = -1;

/**
 * Node starts every request that one read of a socket holds, up to 1,800, before the event loop turns: a client that pipelines
 * would stop the whole process. So the parser stops at the head of a request that `isTaken` rejects, and fails as it would for
 * something that is not HTTP: the server gets a `clientError`. The rest of what was read is never parsed, and so costs nothing.
 *
 * `parser.onIncoming` is internal to Node and not documented. If it is missing, requests still arrive, and their listener
 * has to reject them.
 */
function stopParsingUnless(socket: Socket, isTaken: () => boolean): void {
  const parser = (socket as Socket & { parser?: Parser | null }).parser;
  const onIncoming = parser?.onIncoming;
  if (!parser || typeof onIncoming !== 'function') return;
  parser.onIncoming = (request, shouldKeepAlive) => (isTaken() ? onIncoming(request, shouldKeepAlive) : FAIL);
}

/** Runs what it is given later, in order, a bounded number in each turn of the event loop. */
function createTurns(): (begin: () => void) => void {
  const waiting: (() => void)[] = [];
  let isTurnDue = false;

  function turn(): void {
    isTurnDue = false;
    for (const begin of waiting.splice(0, BEGUN_A_TURN)) begin();
    if (waiting.length > 0) plan();
  }

  function plan(): void {
    if (isTurnDue) return;
    isTurnDue = true;
    setImmediate(turn);
  }

  return (begin) => {
    waiting.push(begin);
    plan();
  };
}
