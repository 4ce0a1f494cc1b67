// The HTTP server around the interface: every time-out and limit set, an answer in our shape also to what Node cannot
// even parse, and an end that lets answers under way go out.

import { createServer, type RequestListener } from 'node:http';
import type { Duplex } from 'node:stream';
import { createStop, hangUp, listen } from '../../http/index.ts';
import type { Limits } from '../accounts/limits.ts';
import { rateHeaders } from './gate.ts';
import { badRequest, bodyOf, type Refusal } from './errors.ts';

export type Server = {
  readonly port: number;
  /** Takes no more, and resolves when the last connection is gone; those that outlive `graceMs` are cut. */
  readonly stop: (graceMs: number) => Promise<void>;
};

const HEADERS_TIMEOUT_MS = 5_000;
/** A body is 64 KiB at most. */
const REQUEST_TIMEOUT_MS = 15_000;
/** Longer than the 60 s after which common clients and balancers close an idle connection: they should be first. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
/** Node looks for overdue requests only so often. */
const CHECK_INTERVAL_MS = 1_000;
const MAX_HEADER_BYTES = 16 * 1024;
const MAX_CONNECTIONS = 1_024;
/** @throws what `listen` gives for a port that is taken */
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
      requireHostHeader: false, // we do, in words of our own
    },
    options.listener,
  );
  server.maxConnections = MAX_CONNECTIONS;
  // Whatever is expected besides 100-continue: the request is answered as any other.
  server.on('checkExpectation', options.listener);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    void answerBroken(error, socket, options.limits);
  });
  // Node hands these to nobody else, and would hang up without a word.
  server.on('connect', (_request, socket) => void answerRaw(NO_TUNNEL, socket, options.limits));
  return { port: await listen(server, options), stop: createStop(server) };
}

const BROKEN: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: { status: 431, error: 'headers_too_large', message: 'the headers are too large' },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    error: 'request_timeout',
    message: 'the request did not arrive in time',
  },
};

const NO_TUNNEL: Refusal = {
  status: 405,
  error: 'method_not_allowed',
  message: 'there is no way through here to other hosts',
};

async function answerBroken(error: NodeJS.ErrnoException, socket: Duplex, limits: Limits): Promise<void> {
  // With an answer begun, a second status line would corrupt it.
  const isAnswering = 'bytesWritten' in socket && Number(socket.bytesWritten) > 0;
  if (error.code === 'ECONNRESET' || !socket.writable || isAnswering) return void socket.destroy();
  const refusal = BROKEN[error.code ?? ''] ?? badRequest('the request is not HTTP as we know it');
  await answerRaw(refusal, socket, limits);
}

/** What is not HTTP, or breaks off, has no caller, but an address, and that has a limit. */
async function answerRaw(refusal: Refusal, socket: Duplex, limits: Limits): Promise<void> {
  const address = 'remoteAddress' in socket ? String(socket.remoteAddress) : '';
  const rate = await limits.spendAddress(address);
  hangUp(socket, { status: refusal.status, answer: bodyOf(refusal), headers: rateHeaders(rate) });
}
