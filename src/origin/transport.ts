// One call of the service: the request with its token, the answer within its limits, and the waits in between. A
// 429 is waited out until the reset it names, for any call, since a refused one has done nothing. Where it is
// unknown what was done (no answer, 5xx), only a read is tried again.

import { setTimeout as pause } from 'node:timers/promises';
import type { z } from 'zod';
import { parseIfJson } from '../json.ts';
import {
  InvalidAnswerError,
  NoAnswerError,
  RateLimitedError,
  type RateLimit,
  type ServiceError,
  toServiceError,
} from './errors.ts';
import { errorSchema } from './schemas.ts';

export type Call = {
  readonly method: 'GET' | 'POST';
  /** Below the base URL. */
  readonly path: string;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
};

export type ExchangeOptions = {
  /** With the version: it ends in `/v1`. */
  readonly baseUrl: string;
  readonly token: string;
  readonly fetch?: typeof globalThis.fetch;
  /** Milliseconds since the epoch; asked only where an answer does not tell its own time. */
  readonly now?: () => number;
  /** Ends early when the signal is aborted. */
  readonly sleep?: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
  /** How often a call is tried again at most (4). */
  readonly maxRetries?: number;
  /** A longer wait for the limit's reset is an error at once (60,000: a burst's window). */
  readonly maxWaitMs?: number;
  /** For one try, from the connection to the last byte (30,000). */
  readonly timeoutMs?: number;
};

type Failure = ServiceError | NoAnswerError;
type Outcome = { readonly json: unknown } | { readonly failure: Failure; readonly serverNowMs: number };

/** A hundred jobs with the longest addresses have less than a fifth of it. */
const ANSWER_MAX_BYTES = 4 * 1024 * 1024;
const MAX_RETRIES = 4;
const MAX_WAIT_MS = 60_000;
const TIMEOUT_MS = 30_000;
/** Between reads that failed: 0.25 s, doubled each time up to 5 s. */
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 5_000;
/** The reset is told in whole seconds: it may seem to be over when it is not. */
const MIN_RESET_WAIT_MS = 250;
/** What may stand in a header. Checked by us, since what `fetch` throws would quote it. */
const TOKEN = /^[\x21-\x7e]+$/;

export type Exchange = <T>(call: Call, schema: z.ZodType<T>) => Promise<T>;

/** @throws TypeError for a base URL or token that cannot be used; it does not quote the token. */
export function createExchange(options: ExchangeOptions): Exchange {
  const { token, fetch = globalThis.fetch, now = Date.now, sleep = wait } = options;
  const { maxRetries = MAX_RETRIES, maxWaitMs = MAX_WAIT_MS, timeoutMs = TIMEOUT_MS } = options;
  const baseUrl = new URL(options.baseUrl).href.replace(/\/+$/, '');
  if (!TOKEN.test(token)) throw new TypeError('the token is empty or holds characters that no token has');

  async function attempt(call: Call): Promise<Outcome> {
    const clock = AbortSignal.timeout(timeoutMs);
    let response: Response;
    let text: string;
    try {
      response = await fetch(baseUrl + call.path, {
        method: call.method,
        headers: {
          Accept: 'application/json',
          Authorization: `Bearer ${token}`,
          ...(call.body === undefined ? {} : { 'Content-Type': 'application/json' }),
        },
        ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
        // The token is for this address and no other.
        redirect: 'manual',
        signal: call.signal === undefined ? clock : AbortSignal.any([clock, call.signal]),
      });
      text = await readText(response);
    } catch (error) {
      call.signal?.throwIfAborted();
      if (error instanceof InvalidAnswerError) throw error;
      return { failure: noAnswer(error, clock.aborted), serverNowMs: now() };
    }
    const json = parseIfJson(text);
    if (!response.ok) {
      const serverNowMs = Date.parse(response.headers.get('Date') ?? '') || now();
      return { failure: toFailure(response, json), serverNowMs };
    }
    if (json === undefined) throw new InvalidAnswerError(`${describe(call)} was not answered with JSON`);
    return { json };
  }

  /** How long to wait before the next try; undefined where there is to be none. */
  function waitMs(call: Call, retries: number, failure: Failure, serverNowMs: number): number | undefined {
    const pauseMs = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** retries);
    if (failure instanceof RateLimitedError) {
      const resetMs = failure.rateLimit === undefined ? pauseMs : failure.rateLimit.resetAtMs - serverNowMs;
      return resetMs > maxWaitMs ? undefined : Math.max(MIN_RESET_WAIT_MS, resetMs);
    }
    const isUnknown = failure instanceof NoAnswerError || failure.httpStatus >= 500;
    return isUnknown && call.method === 'GET' ? pauseMs : undefined;
  }

  return async (call, schema) => {
    for (let retries = 0; ; retries += 1) {
      call.signal?.throwIfAborted();
      const outcome = await attempt(call);
      if ('json' in outcome) return read(call, schema, outcome.json);
      const ms =
        retries < maxRetries ? waitMs(call, retries, outcome.failure, outcome.serverNowMs) : undefined;
      if (ms === undefined) throw outcome.failure;
      await sleep(ms, call.signal);
    }
  };
}

function read<T>(call: Call, schema: z.ZodType<T>, json: unknown): T {
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  const fields = result.error.issues.map((issue) => issue.path.join('.') || 'the whole').slice(0, 5);
  throw new InvalidAnswerError(`${describe(call)} was answered in another form: ${fields.join(', ')}`);
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > ANSWER_MAX_BYTES) throw new InvalidAnswerError('the answer is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function toFailure(response: Response, json: unknown): ServiceError {
  const said = errorSchema.safeParse(json).data;
  return toServiceError({
    code: said?.error ?? `http_${response.status}`,
    message: said?.message ?? `the service answered with status ${response.status}`,
    httpStatus: response.status,
    rateLimit: rateLimitOf(response.headers),
    details: said?.details ?? [],
  });
}

function rateLimitOf(headers: Headers): RateLimit | undefined {
  const [limit, remaining, reset] = ['Limit', 'Remaining', 'Reset'].map((name) => {
    const value = headers.get(`X-RateLimit-${name}`);
    return value !== null && /^\d{1,12}$/.test(value) ? Number(value) : undefined;
  });
  if (limit === undefined || remaining === undefined || reset === undefined) return undefined;
  return { limit, remaining, resetAtMs: reset * 1_000 };
}

function noAnswer(cause: unknown, isLate: boolean): NoAnswerError {
  return isLate
    ? new NoAnswerError('timed_out', 'the service did not answer in time', { cause })
    : new NoAnswerError('unreachable', 'the service cannot be reached', { cause });
}

const describe = ({ method, path }: Call): string => `${method} ${path.split('?')[0]}`;

async function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await pause(ms, undefined, { signal }).catch(() => {});
}
