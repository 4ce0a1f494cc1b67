// Every answer that is not the one asked for, in the one shape that there is (spec 7): `error`, a short code, and
// `message`, a text; for faults of a request's fields also `details`. What went wrong inside is never told.

import type { ErrorRequestHandler, RequestHandler, Response } from 'express';
import { describeError, UnavailableError } from '../../errors.ts';
import { closeIfUnread } from '../../http/index.ts';
import type { Logger } from '../../log.ts';

export type Detail = { readonly field: string; readonly message: string };

export type Refusal = {
  readonly status: number;
  readonly error: string;
  readonly message: string;
  readonly details?: readonly Detail[];
  readonly headers?: Readonly<Record<string, string>>;
};

/** Room comes with the next job that ends; whoever was turned away should not all be back in the same instant. */
const RETRY_AFTER_S = 5;

const CHALLENGE = { 'WWW-Authenticate': 'Bearer' };

export const HEADER_MISSING: Refusal = {
  status: 401,
  error: 'unauthorized',
  message: 'Authorization header required',
  headers: CHALLENGE,
};
export const TOKEN_INVALID: Refusal = {
  status: 401,
  error: 'unauthorized',
  message: 'invalid or expired API token',
  headers: CHALLENGE,
};
export const NOT_FOUND: Refusal = {
  status: 404,
  error: 'not_found',
  message: 'there is no such address, job or webhook delivery',
};
export const NO_HOST: Refusal = badRequest('HTTP/1.1 needs a Host header');
const INTERNAL: Refusal = { status: 500, error: 'internal', message: 'something went wrong on our side' };

export function badRequest(message: string): Refusal {
  return { status: 400, error: 'bad_request', message };
}

/** `details` says what exactly was missing: a scope, or a tier's format. */
export function forbidden(detail: Detail): Refusal {
  const message = 'insufficient permissions for this resource';
  return { status: 403, error: 'forbidden', message, details: [detail] };
}

export function notAllowed(methods: string): Refusal {
  const message = `this address takes ${methods}`;
  return { status: 405, error: 'method_not_allowed', message, headers: { Allow: methods } };
}

export function tooLarge(limitBytes: number): Refusal {
  const message = `the body is larger than ${limitBytes} bytes`;
  return { status: 413, error: 'payload_too_large', message };
}

export function unsupported(message: string): Refusal {
  return { status: 415, error: 'unsupported_media_type', message };
}

export function invalid(details: readonly Detail[]): Refusal {
  const message = details.map((detail) => `${detail.field} ${detail.message}`.trim()).join('; ');
  return { status: 422, error: 'validation_failed', message, details };
}

export function rateLimited(retryAfterS: number): Refusal {
  return {
    status: 429,
    error: 'rate_limited',
    message: 'rate limit exceeded',
    headers: { 'Retry-After': String(retryAfterS) },
  };
}

export function unavailable(message: string): Refusal {
  return {
    status: 503,
    error: 'unavailable',
    message,
    headers: { 'Retry-After': String(RETRY_AFTER_S) },
  };
}

export function bodyOf({ error, message, details }: Refusal): Record<string, unknown> {
  return { error, message, ...(details && { details }) };
}

export function refuse(response: Response, refusal: Refusal): void {
  closeIfUnread(response.req, response);
  response.locals['error'] = refusal.error;
  response
    .status(refusal.status)
    .set(refusal.headers ?? {})
    .json(bodyOf(refusal));
}

export const notFound: RequestHandler = (_request, response) => refuse(response, NOT_FOUND);

export function methodNotAllowed(methods: string): RequestHandler {
  return (_request, response) => refuse(response, notAllowed(methods));
}

/** What Express could not read is the client's fault (4xx); what nobody expected is ours, and is logged. */
export function errorHandler(log: Logger): ErrorRequestHandler {
  return (error: unknown, _request, response, next) => {
    if (response.headersSent) return next(error);
    if (error instanceof UnavailableError) return refuse(response, unavailable(error.message));
    const { status } = error as { status?: unknown };
    if (typeof status === 'number' && status >= 400 && status < 500) {
      return refuse(response, badRequest('the request could not be understood'));
    }
    log.error({ err: describeError(error) }, 'unexpected error');
    return refuse(response, INTERNAL);
  };
}
