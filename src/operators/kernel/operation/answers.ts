// Turns an operation's reply into the bytes of an answer, and an exception into an error answer. JSON is checked by the
// operation's schema before it is sent. A stream is read no faster than its caller reads.

import { pipeline } from 'node:stream/promises';
import type { Response } from 'express';
import { describeError } from '../../../base/errors.ts';
import type { Logger } from '../../../base/log/log.ts';
import { closeIfUnread } from '../../../http/index.ts';
import { isAway, isLockTimeout, isTimeout } from '../../../ledger/index.ts';
import { ApiError, type Operation, type Reply, unavailable } from './operation.ts';

/** Node warns at ten listeners; its pipeline alone adds seven to the answer. */
const STREAM_LISTENERS = 20;

/** Short, since what is busy may be free soon. Of the rate limit, the gate knows it better. */
const RETRY_AFTER_S = 2;

export function sendError(response: Response, { status, code, message }: ApiError): void {
  closeIfUnread(response.req, response);
  if ((status === 429 || status === 503) && !response.hasHeader('Retry-After'))
    response.set('Retry-After', String(RETRY_AFTER_S));
  if (status === 401) response.set('WWW-Authenticate', 'Bearer'); // RFC 9110, 11.6.1
  response.status(status).json({ error: code, message });
}

/** The answer's JSON, with the fields of its schema alone. @throws Error if the body does not match the schema */
export function toJson(operation: Operation, reply: { status: number; body: unknown }): string {
  const spec = operation.answers[reply.status];
  if (spec === undefined || !('schema' in spec)) {
    throw new Error(`${operation.id} has no answer of JSON with status ${reply.status}`);
  }
  const { data, error } = spec.schema.safeParse(reply.body);
  if (error !== undefined) {
    const places = error.issues.slice(0, 3).map((issue) => `${issue.path.join('.')}: ${issue.message}`);
    throw new Error(`${operation.id} answered what its schema does not know: ${places.join('; ')}`);
  }
  return JSON.stringify(data);
}

export function sendJson(response: Response, status: number, json: string): void {
  response.status(status).type('json').send(json);
}

/** Of a stream that nobody reads. */
export function sendHead(response: Response, reply: Extract<Reply, { stream: unknown }>): void {
  reply.stream.destroy(); // its place among exports or listeners is free again
  response
    .status(reply.status)
    .set({ 'Content-Type': reply.contentType, ...reply.headers })
    .end();
}

/** Resolves when everything was sent or the caller has disconnected. */
export async function sendStream(
  response: Response,
  reply: Extract<Reply, { stream: unknown }>,
  { signal, log }: { signal: AbortSignal; log: Logger },
): Promise<void> {
  response.status(reply.status).set({ 'Content-Type': reply.contentType, ...reply.headers });
  // The head goes out first. After it, an error can only be shown by closing the connection before the end.
  response.flushHeaders();
  response.setMaxListeners(STREAM_LISTENERS);
  try {
    await pipeline(reply.stream, response, { signal });
  } catch (error) {
    // Judged by the error and not by the signal: our own failure closes the connection too, which aborts the signal.
    if (!isDisconnect(error)) log.warn({ err: describeError(error) }, 'a streamed answer broke off');
    // Both explicitly: if the caller left before the pipeline began, it destroys neither, and the stream would stay open.
    reply.stream.destroy();
    response.destroy();
  }
}

/** Whether the error means only that the caller has disconnected. */
export function isDisconnect(error: unknown): boolean {
  if (error instanceof Error && error.name === 'AbortError') return true;
  return ['ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_UNABLE_TO_PIPE'].includes(codeOf(error));
}

const codeOf = (error: unknown): string => {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : '';
};

/** SQLSTATE classes (connection, resources, operator intervention), and the errors of sockets. */
const DATABASE_AWAY = /^(?:08|53|57P|25P03)|^E(?:CONN|PIPE|HOST|NET|TIMEDOUT|AI_)/;

/** Undefined for an unexpected error: api.ts answers it with 500 and logs it. */
export function toApiError(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error;
  const code = codeOf(error);
  if (isTimeout(error)) {
    return new ApiError(
      503,
      'query_timeout',
      'the database took too long for this: narrow the filter, or try again',
    );
  }
  if (isLockTimeout(error)) {
    return new ApiError(503, 'query_timeout', 'something else holds what this needs: try again');
  }
  // Class 22: a value that does not fit its type. The schemas should have rejected it, but it came from the caller.
  if (code.startsWith('22')) {
    return new ApiError(400, 'invalid_request', 'the database refuses a value of this request');
  }
  return DATABASE_AWAY.test(code) || isAway(error) ? unavailable() : undefined;
}
