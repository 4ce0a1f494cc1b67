// The HTTP server of the API. Sets all time-outs and limits, gives requests that Node cannot parse an error answer in our
// shape, and completes the responses under way when it stops.

import { createServer, type RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { peerAddress, createStop, hangUp, listen } from '../../http/index.ts';
import type { Limits } from '../accounts/limits.ts';
import { rateHeaders } from './gate.ts';
import { badRequest, bodyOf, type ErrorAnswer } from './errors.ts';

export type Server = {
  readonly port: number;
  /** Stops listening, and resolves when the last connection has ended. Connections are cut after `graceMs`. */
  readonly stop: (graceMs: number) => Promise<void>;
};

const HEADERS_TIMEOUT_MS = 5_000;
/** For the whole request, whose body has at most 64 KiB. */
const REQUEST_TIMEOUT_MS = 15_000;
/** Longer than the 60 s of common clients and load balancers, which must be the first to close a connection. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
/** How often Node checks the time-outs. */
const CHECK_INTERVAL_MS = 1_000;
const MAX_HEADER_BYTES = 16 * 1024;
const MAX_CONNECTIONS = 1_024;

/** @throws the system's error if the port is taken */
export async function startServer(options: {
  listener: RequestListener;
  limits: Limits;
  host: string;
  port: number;
}): Promise<Server> {
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      requireHostHeader: false, // the gate checks it and responds with a body
    },
    options.listener,
  );
  server.maxConnections = MAX_CONNECTIONS;
  // An `Expect` header other than 100-continue is ignored.
  server.on('checkExpectation', options.listener);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    void answerBroken(error, socket, options.limits);
  });
  // Without this listener, Node would close the connection without a response.
  server.on('connect', (_request, socket) => void answerRaw(NO_TUNNEL, socket, options.limits));
  return { port: await listen(server, options), stop: createStop(server) };
}

const BROKEN: Readonly<Record<string, ErrorAnswer>> = {
  HPE_HEADER_OVERFLOW: { status: 431, error: 'headers_too_large', message: 'the headers are too large' },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    error: 'request_timeout',
    message: 'the request did not arrive in time',
  },
};

const NO_TUNNEL: ErrorAnswer = {
  status: 405,
  error: 'method_not_allowed',
  message: 'this is not a proxy',
};

async function answerBroken(error: NodeJS.ErrnoException, socket: Duplex, limits: Limits): Promise<void> {
  // A response is under way; a second status line would corrupt it.
  const isAnswering = 'bytesWritten' in socket && Number(socket.bytesWritten) > 0;
  if (error.code === 'ECONNRESET' || !socket.writable || isAnswering) return void socket.destroy();
  const answer = BROKEN[error.code ?? ''] ?? badRequest('the request is malformed HTTP');
  await answerRaw(answer, socket, limits);
}

/** A broken request has no token, so it counts for its IP address. */
async function answerRaw(answer: ErrorAnswer, socket: Duplex, limits: Limits): Promise<void> {
  const rate = await limits.spendAddress(peerAddress(socket as Socket) ?? '');
  hangUp(socket, { status: answer.status, answer: bodyOf(answer), headers: rateHeaders(rate) });
}
