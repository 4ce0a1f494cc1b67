// How errors become answers, in one place: always `{"error": code, "message": text}` (spec 7), never a stack
// and never a word of what went wrong inside.

import type { Server } from 'node:http';
import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';
import type { Logger } from 'pino';
import { describeError } from '../errors.ts';

export const notFound: RequestHandler = (request, response) => {
  closeIfUnread(request, response);
  response.status(404).json({ error: 'not_found', message: 'there is nothing at this address' });
};

/** Express hands us what it could not parse (4xx) and what nobody expected (500, logged). */
export function errorHandler(log: Logger): ErrorRequestHandler {
  return (error: unknown, request, response, next) => {
    if (response.headersSent) return next(error);
    const status = (error as { status?: unknown }).status;
    closeIfUnread(request, response);
    if (typeof status === 'number' && status >= 400 && status < 500) {
      return void response
        .status(status)
        .json({ error: 'bad_request', message: 'the request could not be understood' });
    }
    log.error({ err: describeError(error), path: request.path }, 'unexpected error');
    return void response.status(500).json({ error: 'internal', message: 'something went wrong on our side' });
  };
}

/** Without this Node would drain the rest of an unread body, for as long as it comes. */
export function closeIfUnread(request: Request, response: Response): void {
  const hasBody =
    request.get('transfer-encoding') !== undefined || Number(request.get('content-length') ?? 0) > 0;
  if (hasBody && !request.complete) response.set('Connection', 'close');
}

const PROTOCOL_ERRORS: Readonly<Record<string, readonly [string, string, string]>> = {
  HPE_HEADER_OVERFLOW: [
    '431 Request Header Fields Too Large',
    'headers_too_large',
    'the headers are too large',
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'request_timeout', 'the request did not arrive in time'],
};
const BAD_REQUEST = ['400 Bad Request', 'bad_request', 'the request is not HTTP as we know it'] as const;

/** Answers what Node could not even parse, in our own error shape, and hangs up. */
export function answerProtocolErrors(server: Server): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // A request of this connection may be half answered; a second status line would corrupt that answer.
    // oxlint-disable-next-line no-underscore-dangle -- Node offers no public name for it
    const answering = (socket as unknown as { _httpMessage?: unknown })._httpMessage !== undefined;
    if (error.code === 'ECONNRESET' || !socket.writable || answering) {
      socket.destroy();
      return;
    }
    const [status, code, message] = PROTOCOL_ERRORS[error.code ?? ''] ?? BAD_REQUEST;
    const body = JSON.stringify({ error: code, message });
    socket.end(
      `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
  });
}
