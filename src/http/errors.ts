// How errors become answers, in one place, and how a connection ends with such an answer. An error is always
// `{"error": code, "message": text}` (service interface 7), never a stack, and reveals no internal details.

import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ErrorRequestHandler, RequestHandler } from 'express';
import type { Logger } from 'pino';
import { describeError } from '../base/errors.ts';
import { peerAddress } from './address.ts';
import type { Connections } from './connections.ts';
import { kindOfError, type Unparsed } from './unparsed.ts';

/** On each answer: browsers must not guess another content type than we name. */
export const NOSNIFF = { 'X-Content-Type-Options': 'nosniff' } as const;

type HttpError = { readonly status: number; readonly error: string; readonly message: string };

/** What any server of ours can answer to a request that no route takes or that Node cannot parse. */
export const HTTP_ERRORS = {
  badRequest: { status: 400, error: 'bad_request', message: 'the request is malformed HTTP' },
  notFound: { status: 404, error: 'not_found', message: 'there is nothing at this address' },
  noTunnel: { status: 405, error: 'method_not_allowed', message: 'this is no proxy' },
  requestTimeout: { status: 408, error: 'request_timeout', message: 'the request did not arrive in time' },
  expectationFailed: {
    status: 417,
    error: 'expectation_failed',
    message: 'nothing but 100-continue can be expected',
  },
  headersTooLarge: { status: 431, error: 'headers_too_large', message: 'the headers are too large' },
} as const satisfies Record<string, HttpError>;

export const notFound: RequestHandler = (request, response) => {
  closeIfUnread(request, response);
  const { status, ...answer } = HTTP_ERRORS.notFound;
  response.status(status).json(answer);
};

/** For an address that is only read. Express takes HEAD, too, for each GET. */
export const onlyGet: RequestHandler = (request, response) => {
  closeIfUnread(request, response);
  response
    .status(405)
    .set('Allow', 'GET, HEAD')
    .json({ error: 'method_not_allowed', message: 'use GET or HEAD' });
};

/** The answer with status 500. */
const INTERNAL = { error: 'internal', message: 'something went wrong on our side' } as const;

/** For requests that Express could not parse (4xx) and for unexpected errors (500, logged). */
export function errorHandler(log: Logger): ErrorRequestHandler {
  // Express tells an error handler by its fourth parameter.
  return (error: unknown, request, response, _next) => {
    const { status } = error as { status?: unknown };
    const isTheirs = typeof status === 'number' && status >= 400 && status < 500;
    if (!isTheirs) log.error({ err: describeError(error), path: request.path }, 'unexpected error');
    // Express' own handler would do the same, and write the error to stderr as it is.
    if (response.headersSent) return void request.socket.destroy();
    closeIfUnread(request, response);
    response.set(NOSNIFF); // the app may have failed before it set its own headers
    if (isTheirs) {
      return void response
        .status(status)
        .json({ error: HTTP_ERRORS.badRequest.error, message: 'the request could not be understood' });
    }
    return void response.status(500).json(INTERNAL);
  };
}

/** By Node's code. */
const PROTOCOL_ERRORS: Readonly<Record<string, HttpError>> = {
  HPE_INVALID_EOF_STATE: { ...HTTP_ERRORS.badRequest, message: 'the request ended before it was whole' },
  HPE_HEADER_OVERFLOW: HTTP_ERRORS.headersTooLarge,
  ERR_HTTP_REQUEST_TIMEOUT: HTTP_ERRORS.requestTimeout,
};

/** The headers of each answer on a server, also where Node could not parse a request. Never rejects. */
export type StandingHeaders = (remoteAddress: string) => Promise<Readonly<Record<string, string>>>;

/** Answers a request that Node could not parse, in our own form, and ends the connection. */
export function answerProtocolErrors(
  server: Server,
  {
    underWay,
    standing,
    unparsed,
  }: { underWay: Connections['underWay']; standing: StandingHeaders; unparsed: Unparsed['note'] },
): void {
  async function part(socket: Duplex, { status, ...answer }: HttpError, more = {}): Promise<void> {
    hangUp(socket, { status, answer, headers: { ...(await standing(peerOf(socket))), ...more } });
  }
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const kind = kindOfError(error);
    if (kind !== undefined) unparsed(kind, peerAddress(socket as Socket));
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    const open = underWay(socket);
    const last = open.at(-1);
    const broken = last?.req.complete === false ? last : undefined;
    const whole = broken === undefined ? last : open.at(-2);
    // An error now would corrupt the answer to a whole request that is still under way: that answer becomes the last one. The
    // handler of a broken request sees the connection close.
    if (whole !== undefined) return closeAfter(whole, socket);
    if (broken?.headersSent) return void socket.destroy();
    void part(socket, PROTOCOL_ERRORS[error.code ?? ''] ?? HTTP_ERRORS.badRequest);
  });
  // Without a listener Node would destroy the socket, and the answers under way with it.
  server.on('connect', (_request, socket) => {
    unparsed('connect', peerAddress(socket as Socket));
    // Node has detached the socket: its events are ours to handle now.
    socket.on('error', () => socket.destroy());
    socket.on('drain', () => underWay(socket)[0]?.emit('drain'));
    const last = underWay(socket).at(-1);
    if (last === undefined) void part(socket, HTTP_ERRORS.noTunnel, { Allow: '' });
    else closeAfter(last, socket);
  });
}

/** For a request that expects anything but 100-continue: Node would answer it without a body. */
export function rejectExpectation(response: ServerResponse, standing: StandingHeaders): void {
  void reject(response, HTTP_ERRORS.expectationFailed, standing);
}

/**
 * HTTP/1.1 wants exactly one Host (RFC 9112, 3.2). Node would answer a missing one without a body, and would take the first of
 * two. @returns whether the request was rejected.
 */
export function rejectWithoutHost(
  request: IncomingMessage,
  response: ServerResponse,
  standing: StandingHeaders,
): boolean {
  const hosts = countHosts(request);
  if (hosts === 1 || (hosts === 0 && request.httpVersion !== '1.1')) return false;
  void reject(response, HTTP_ERRORS.badRequest, standing);
  return true;
}

function countHosts({ rawHeaders }: IncomingMessage): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

async function reject(
  response: ServerResponse,
  { status, ...answer }: HttpError,
  standing: StandingHeaders,
): Promise<void> {
  const body = JSON.stringify(answer);
  const headers = await standing(peerOf(response.req.socket));
  if (response.destroyed) return;
  response
    .writeHead(status, {
      ...headers,
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': Buffer.byteLength(body),
      Connection: 'close',
    })
    .end(body);
}

const peerOf = (socket: Duplex): string => peerAddress(socket as Socket) ?? '';

/** Ends the connection after an answer to a body that is not read whole. Node would go on reading it for as long as it comes. */
export function closeIfUnread(request: IncomingMessage, response: ServerResponse): void {
  const { 'transfer-encoding': encoding, 'content-length': length } = request.headers;
  const hasBody = encoding !== undefined || Number(length ?? 0) > 0;
  if (!hasBody || request.complete) return;
  response.setHeader('Connection', 'close');
  const { socket } = request;
  socket.destroySoon = () => linger(socket);
}

/** Ends the connection after this answer, and reads nothing more from it. May be called again. */
export function closeAfter(last: ServerResponse | undefined, socket: Duplex): void {
  socket.pause();
  if (last === undefined) return void socket.destroy();
  if (last.headersSent) last.off('finish', endConnection).once('finish', endConnection);
  else last.setHeader('Connection', 'close');
}

function endConnection(this: ServerResponse): void {
  this.req.socket.destroy();
}

/** After our last answer the other side has this long to close the connection; then we close it. */
const LINGER_MS = 1_000;

/**
 * Says that nothing more comes, and drops what still arrives. A connection that is closed with bytes unread is reset: the sender, or a proxy
 * that still sends, loses the answer, and nginx makes a 502 of it.
 */
function linger(socket: Duplex): void {
  if (socket.destroyed) return;
  socket.end();
  socket.resume();
  closeSoon(socket);
}

/** Half open, it would keep one of our connections for as long as the other side likes. */
function closeSoon(socket: Duplex): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
}

/** Writes `answer` as JSON to a connection without a parsed request, and ends it. */
export function hangUp(
  socket: Duplex,
  { status, answer, headers = {} }: { status: number; answer: object; headers?: Record<string, string> },
): void {
  const body = JSON.stringify(answer);
  const all = {
    ...headers,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
  closeSoon(socket);
}
