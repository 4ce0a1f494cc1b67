// All error answers of the API, in one shape (service interface 7): `error`, a short code, and `message`, a text; for invalid
// fields also `details`. They reveal nothing about internal errors.

import type { ErrorRequestHandler, RequestHandler, Response } from 'express';
import { describeError, UnavailableError } from '../../base/errors.ts';
import { closeIfUnread } from '../../http/index.ts';
import type { Logger } from '../../base/log/log.ts';

export type Detail = { readonly field: string; readonly message: string };

export type ErrorAnswer = {
  readonly status: number;
  readonly error: string;
  readonly message: string;
  readonly details?: readonly Detail[];
  readonly headers?: Readonly<Record<string, string>>;
};

/** Ends a request with an error answer. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: string;
  readonly answer: ErrorAnswer;

  constructor(answer: ErrorAnswer, options?: ErrorOptions) {
    super(answer.message, options);
    this.code = answer.error;
    this.answer = answer;
  }
}

/** There is room when the next job ends, which takes seconds. */
const RETRY_AFTER_S = 5;

const CHALLENGE = { 'WWW-Authenticate': 'Bearer' };

export const HEADER_MISSING: ErrorAnswer = {
  status: 401,
  error: 'unauthorized',
  message: 'Authorization header required',
  headers: CHALLENGE,
};
export const TOKEN_INVALID: ErrorAnswer = {
  status: 401,
  error: 'unauthorized',
  message: 'invalid or expired API token',
  headers: CHALLENGE,
};
export const NOT_FOUND: ErrorAnswer = {
  status: 404,
  error: 'not_found',
  message: 'there is no such address, job or webhook delivery',
};
export const NO_HOST: ErrorAnswer = badRequest('HTTP/1.1 needs a Host header');
export const INVALID_CURSOR: ErrorAnswer = invalid([{ field: 'cursor', message: 'is not one of ours' }]);
const INTERNAL: ErrorAnswer = { status: 500, error: 'internal', message: 'something went wrong on our side' };

export function badRequest(message: string): ErrorAnswer {
  return { status: 400, error: 'bad_request', message };
}

/** `detail` says what is missing: a scope, or a format in the tier. */
export function forbidden(detail: Detail): ErrorAnswer {
  const message = 'insufficient permissions for this resource';
  return { status: 403, error: 'forbidden', message, details: [detail] };
}

export function notAllowed(methods: string): ErrorAnswer {
  const message = `this address takes ${methods}`;
  return { status: 405, error: 'method_not_allowed', message, headers: { Allow: methods } };
}

export function tooLarge(limitBytes: number): ErrorAnswer {
  const message = `the body is larger than ${limitBytes} bytes`;
  return { status: 413, error: 'payload_too_large', message };
}

export function unsupported(message: string): ErrorAnswer {
  return { status: 415, error: 'unsupported_media_type', message };
}

export function invalid(details: readonly Detail[]): ErrorAnswer {
  const message = details.map((detail) => `${detail.field} ${detail.message}`.trim()).join('; ');
  return { status: 422, error: 'validation_failed', message, details };
}

export function rateLimited(retryAfterS: number): ErrorAnswer {
  return {
    status: 429,
    error: 'rate_limited',
    message: 'rate limit exceeded',
    headers: { 'Retry-After': String(retryAfterS) },
  };
}

export function unavailable(message: string): ErrorAnswer {
  return {
    status: 503,
    error: 'unavailable',
    message,
    headers: { 'Retry-After': String(RETRY_AFTER_S) },
  };
}

export function bodyOf({ error, message, details }: ErrorAnswer): Record<string, unknown> {
  return { error, message, ...(details && { details }) };
}

export function sendError(response: Response, answer: ErrorAnswer): void {
  closeIfUnread(response.req, response);
  response.locals['error'] = answer.error;
  response
    .status(answer.status)
    .set(answer.headers ?? {})
    .json(bodyOf(answer));
}

export const notFound: RequestHandler = (_request, response) => sendError(response, NOT_FOUND);

export function methodNotAllowed(methods: string): RequestHandler {
  return (_request, response) => sendError(response, notAllowed(methods));
}

/** What Express cannot parse is the client's fault (4xx). Other errors are unexpected and logged. */
export function errorHandler(log: Logger): ErrorRequestHandler {
  return (error: unknown, _request, response, next) => {
    if (response.headersSent) return next(error);
    if (error instanceof ApiError) return sendError(response, error.answer);
    if (error instanceof UnavailableError) return sendError(response, unavailable(error.message));
    const { status } = error as { status?: unknown };
    if (typeof status === 'number' && status >= 400 && status < 500) {
      return sendError(response, badRequest('the request could not be understood'));
    }
    log.error({ err: describeError(error) }, 'unexpected error');
    return sendError(response, INTERNAL);
  };
}
