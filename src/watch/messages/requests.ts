// One HTTP exchange with an address of ALERTS_FILE: bounded in time and size, no redirect followed, the answer's body thrown away.
// What it says of a failure names neither the address nor its host.

import { lookup as systemLookup } from 'node:dns';
import type { IncomingMessage } from 'node:http';
import type { LookupFunction } from 'node:net';
import { connectionFault } from '../../base/net/connection-fault.ts';
import { limitLookups } from '../../base/net/lookups.ts';
import { requestOnce } from '../../base/net/request-once.ts';
import type { Content } from './forms.ts';

export type Answer =
  | { readonly isTaken: true }
  | { readonly isTaken: false; readonly error: string; readonly retryAfterMs?: number };

/** Posts the content, or gets the address without one. Undefined when `signal` was aborted; never rejects. */
export type Send = (url: string, content?: Content) => Promise<Answer | undefined>;

/** As long as the conversion service waits for a receiver. */
export const TIMEOUT_MS = 10_000;
/** Receivers answer with a word or a line. After so much the connection is closed: the status counts all the same. */
const ANSWER_MAX_BYTES = 16 * 1024;
/** A receiver that asks for more is asked again sooner: an incident cannot wait for a day. */
const RETRY_AFTER_MAX_MS = 60 * 60 * 1_000;
/**
 * libuv looks names up in 4 threads, and Postgres' and RabbitMQ's names in the same. A name whose servers are silent takes one for 10 s
 * and more. The management API (base/amqp/management-api.ts) may take one more: one is always left for the others.
 */
const LOOKUPS_MAX = 2;

/** @param options.timeoutMs for the whole, from the lookup to the head of the answer; its body has the rest of it */
export function createSend({
  timeoutMs = TIMEOUT_MS,
  signal,
}: {
  timeoutMs?: number;
  signal: AbortSignal;
}): Send {
  const lookup = limitLookups(systemLookup, LOOKUPS_MAX);
  return async (url, content) => {
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      const answer = await exchange(new URL(url), content, {
        lookup,
        signal: AbortSignal.any([timeout, signal]),
      });
      return answerOf(answer);
    } catch (error) {
      if (signal.aborted) return undefined;
      return {
        isTaken: false,
        error: timeout.aborted ? `no answer within ${timeoutMs / 1_000} s` : connectionFault(error),
      };
    }
  };
}

/** Resolves with the head of the answer. */
async function exchange(
  url: URL,
  content: Content | undefined,
  options: { lookup: LookupFunction; signal: AbortSignal },
): Promise<IncomingMessage> {
  const response = await requestOnce(url, {
    ...options,
    method: content === undefined ? 'GET' : 'POST',
    headers: {
      ...content?.headers,
      ...(content !== undefined && { 'Content-Length': content.body.length }),
    },
    body: content?.body,
  });
  throwAway(response);
  return response;
}

function throwAway(response: IncomingMessage): void {
  let bytes = 0;
  response.on('error', () => {}); // cut: its head is known
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > ANSWER_MAX_BYTES) response.destroy();
  });
}

function answerOf({ statusCode = 0, headers }: IncomingMessage): Answer {
  if (statusCode >= 200 && statusCode < 300) return { isTaken: true };
  const isRedirect = statusCode >= 300 && statusCode < 400;
  const retryAfterMs = readRetryAfter(headers['retry-after']);
  return {
    isTaken: false,
    error: `answered with status ${statusCode}${isRedirect ? ', and redirects are not followed' : ''}`,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
}

/** Seconds, or a date (RFC 9110, 10.2.3). */
function readRetryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), RETRY_AFTER_MAX_MS);
}
