// From an operation's reply to the bytes of an answer, and from what went wrong to an error in the API's shape. What is
// answered as JSON has gone through the operation's schema; a stream is read no faster than its caller reads.

import { pipeline } from 'node:stream/promises';
import type { Response } from 'express';
import { describeError } from '../../errors.ts';
import { closeIfUnread } from '../../http/index.ts';
import { isTimeout } from '../../ledger/index.ts';
import type { Logger } from '../../log.ts';
import { ApiError, type Operation, type Reply } from './operation.ts';

/** Node's pipeline alone listens seven times to the end of an answer. */
const STREAM_LISTENERS = 20;

/** Whoever was turned away for our sake comes back soon. */
const RETRY_AFTER_S = 2;

export function sendError(response: Response, { status, code, message }: ApiError): void {
  closeIfUnread(response.req, response);
  if (status === 503 && !response.hasHeader('Retry-After'))
    response.set('Retry-After', String(RETRY_AFTER_S));
  if (status === 401) response.set('WWW-Authenticate', 'Bearer'); // RFC 9110, 11.6.1
  response.status(status).json({ error: code, message });
}

/** The JSON of an answer, as its schema lets it through. @throws Error if the operation broke its own promise */
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

/** Resolves when all was sent or the caller has gone. */
export async function sendStream(
  response: Response,
  reply: Extract<Reply, { stream: unknown }>,
  { signal, log }: { signal: AbortSignal; log: Logger },
): Promise<void> {
  response.status(reply.status).set({ 'Content-Type': reply.contentType, ...reply.headers });
  // An error after the head can be told in one way alone: the answer ends where it should not.
  response.flushHeaders();
  response.setMaxListeners(STREAM_LISTENERS);
  try {
    await pipeline(reply.stream, response, { signal });
  } catch (error) {
    // By the error and not by the signal: our own failure closes the connection, and that looks like a caller who left.
    if (!isDeparture(error)) log.warn({ err: describeError(error) }, 'a streamed answer broke off');
    // Both: of a caller who left before it began, the pipeline touches neither, and the stream would keep its place.
    reply.stream.destroy();
    response.destroy();
  }
}

/** Whether it says no more than that the caller has gone. */
export function isDeparture(error: unknown): boolean {
  if (error instanceof Error && error.name === 'AbortError') return true;
  return ['ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_UNABLE_TO_PIPE'].includes(codeOf(error));
}

const codeOf = (error: unknown): string => {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : '';
};

/** SQLSTATE classes: connection, resources, operator intervention; and what sockets say. */
const AWAY = /^(?:08|53|57P|25P03)|^E(?:CONN|PIPE|HOST|NET|TIMEDOUT|AI_)/;

/** Undefined for what nobody expected: a 500, and a line in the log. */
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
  if (code === '55P03') {
    return new ApiError(503, 'query_timeout', 'something else holds what this needs: try again');
  }
  // Class 22: a value that no type holds. The schemas should have refused it; it is the caller's all the same.
  if (code.startsWith('22')) {
    return new ApiError(400, 'invalid_request', 'the database refuses a value of this request');
  }
  if (AWAY.test(code) || isDriverTimeout(error)) {
    return new ApiError(
      503,
      'unavailable',
      'the database cannot be reached, or has too much to do: try again',
    );
  }
  return undefined;
}

/** The driver and its pool tell these by their text alone. */
function isDriverTimeout(error: unknown): boolean {
  return (
    error instanceof Error &&
    /^(?:Query read timeout|timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error|timeout expired)/.test(
      error.message,
    )
  );
}
