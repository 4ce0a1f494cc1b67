// One call of the API: the request with its token, the answer within its limits, and the waits in between. A lost
// connection, a 429 and a 503 are tried again, a bounded number of times: reads change nothing, and every action carries
// an Idempotency-Key, by which the service knows the repeat. The token is sent to the base URL and nowhere else.

import { setTimeout as pause } from 'node:timers/promises';
import type { z } from 'zod';
import { ApiAnswerError, InvalidAnswerError, NoAnswerError } from './errors.ts';
import { parseIfJson } from '../../json.ts';
import { ErrorAnswer } from '../contract/error.ts';

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export type Call = {
  readonly method: 'GET' | 'POST';
  /** Below `/api/v1`, each part of it encoded. */
  readonly path: string;
  readonly query?: Query;
  readonly body?: unknown;
  /** Of an action: the same on every try. */
  readonly idempotencyKey?: string;
  readonly accept?: string;
  readonly signal?: AbortSignal | undefined;
};

export type ExchangeOptions = {
  /** Of the operators' side: `http://127.0.0.1:8081`. */
  readonly baseUrl: string;
  readonly token: string;
  readonly fetch?: typeof globalThis.fetch;
  /** For one JSON call, from the connection to the last byte; for a stream until its head (30,000). */
  readonly timeoutMs?: number;
  /** A longer wait is an error at once (60,000: the window of the API's limit). */
  readonly maxWaitMs?: number;
  /** Called before a wait that a person would notice. */
  readonly onWait?: (waitMs: number, error: ApiAnswerError | NoAnswerError) => void;
  readonly sleep?: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
};

export type Exchange = {
  readonly json: <T>(call: Call, schema: z.ZodType<T>) => Promise<T>;
  /** An answer of any length. A connection that is lost while it is read throws `NoAnswerError` with the code `cut`. */
  readonly stream: (call: Call) => AsyncGenerator<Uint8Array, void, undefined>;
};

/** A page of 200 deliveries with their longest texts, or 1,000 items of a job's story, has a quarter of it. */
const ANSWER_MAX_BYTES = 16 * 1024 * 1024;
const TIMEOUT_MS = 30_000;
const MAX_WAIT_MS = 60_000;
const MAX_RETRIES = 4;
/** What did not answer for the whole time-out is likely to do so again. */
const MAX_RETRIES_WHEN_LATE = 1;
/** Between tries: 0.25 s, doubled each time. */
const FIRST_PAUSE_MS = 250;
/** Shorter waits are not worth a word. */
const NOTICED_MS = 2_000;
/** What may stand in a header. Checked by us, since what `fetch` throws would quote it. */
const TOKEN = /^[\x21-\x7e]+$/;
const RETRIED_STATUSES: readonly number[] = [429, 502, 503, 504];
/** The try before, whose connection was lost, is still at work. */
const RETRIED_CODE = 'in_progress';
/** Asked again, the same query would take as long again. */
const NOT_RETRIED_CODE = 'query_timeout';

/** What is wrong with it, without quoting it; undefined if nothing is. */
export function tokenFault(token: string): string | undefined {
  return TOKEN.test(token) ? undefined : 'the token is empty or holds characters that no token has';
}

/** What is wrong with it, without quoting it; undefined if nothing is. */
export function addressFault(url: string): string | undefined {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const isUsable = parsed !== undefined && ['http:', 'https:'].includes(parsed.protocol);
  if (isUsable && parsed.username === '' && parsed.search === '' && parsed.hash === '') return undefined;
  return 'the address must be an http or https URL without user, query or fragment';
}

/** @throws TypeError for a base URL or token that cannot be used; it quotes neither. */
export function createExchange(options: ExchangeOptions): Exchange {
  const { token, fetch = globalThis.fetch, timeoutMs = TIMEOUT_MS, maxWaitMs = MAX_WAIT_MS } = options;
  const { onWait, sleep = wait } = options;
  const fault = tokenFault(token) ?? addressFault(options.baseUrl);
  if (fault !== undefined) throw new TypeError(fault);
  const base = `${new URL(options.baseUrl).href.replace(/\/+$/, '')}/api/v1`;

  async function send(call: Call, signal: AbortSignal): Promise<Response> {
    const { method, body, idempotencyKey } = call;
    const response = await fetch(base + call.path + toQuery(call.query), {
      method,
      headers: {
        Accept: call.accept ?? 'application/json',
        Authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      // The token is for this address and no other.
      redirect: 'manual',
      signal,
    });
    if (!response.ok) throw toAnswerError(response, parseIfJson(await readText(response)));
    return response;
  }

  /** One try; what went wrong on the way is a `NoAnswerError`. */
  async function attempt<T>(call: Call, read: (response: Response) => Promise<T>): Promise<T> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), timeoutMs);
    const signals = call.signal === undefined ? [late.signal] : [late.signal, call.signal];
    try {
      return await read(await send(call, AbortSignal.any(signals)));
    } catch (error) {
      call.signal?.throwIfAborted();
      if (error instanceof ApiAnswerError || error instanceof InvalidAnswerError) throw error;
      throw noAnswer(error, { isLate: late.signal.aborted, at: base });
    } finally {
      clearTimeout(timer);
    }
  }

  async function withRetries<T>(call: Call, once: () => Promise<T>): Promise<T> {
    for (let retries = 0; ; retries += 1) {
      try {
        return await once();
      } catch (error) {
        const waitMs = pauseBefore(error, retries, maxWaitMs);
        if (waitMs === undefined) throw error;
        if (waitMs >= NOTICED_MS) onWait?.(waitMs, error as ApiAnswerError | NoAnswerError);
        await sleep(waitMs, call.signal);
        call.signal?.throwIfAborted();
      }
    }
  }

  async function* stream(call: Call): AsyncGenerator<Uint8Array, void, undefined> {
    const response = await withRetries(call, () => attempt(call, (found) => Promise.resolve(found)));
    try {
      yield* response.body ?? [];
    } catch (error) {
      call.signal?.throwIfAborted();
      throw new NoAnswerError('cut', 'the answer was cut before its end', { cause: error });
    }
  }

  return {
    json: (call, schema) =>
      withRetries(call, async () => {
        const json = await attempt(call, async (response) => parseIfJson(await readText(response)));
        const result = schema.safeParse(json);
        if (result.success) return result.data;
        const fields = result.error.issues.map(({ path }) => path.join('.') || 'the whole').slice(0, 5);
        throw new InvalidAnswerError(
          `${call.method} ${call.path} was answered in another form: ${fields.join(', ')}`,
        );
      }),
    stream,
  };
}

/** How long to wait before the next try; undefined where there is to be none. */
function pauseBefore(error: unknown, retries: number, maxWaitMs: number): number | undefined {
  const pauseMs = FIRST_PAUSE_MS * 2 ** retries;
  if (error instanceof NoAnswerError) {
    return retries < (error.code === 'timed_out' ? MAX_RETRIES_WHEN_LATE : MAX_RETRIES) ? pauseMs : undefined;
  }
  if (!(error instanceof ApiAnswerError) || retries >= MAX_RETRIES) return undefined;
  const isPassing = RETRIED_STATUSES.includes(error.httpStatus) || error.code === RETRIED_CODE;
  if (!isPassing || error.code === NOT_RETRIED_CODE) return undefined;
  const waitMs = Math.max(pauseMs, error.retryAfterMs ?? 0);
  return waitMs > maxWaitMs ? undefined : waitMs;
}

function toQuery(query: Query = {}): string {
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
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

function toAnswerError(response: Response, json: unknown): ApiAnswerError {
  const said = ErrorAnswer.safeParse(json).data;
  const seconds = response.headers.get('Retry-After');
  return new ApiAnswerError({
    code: said?.error ?? `http_${response.status}`,
    message: said?.message ?? `the service answered with status ${response.status}`,
    httpStatus: response.status,
    retryAfterMs: seconds !== null && /^\d{1,9}$/.test(seconds) ? Number(seconds) * 1_000 : undefined,
  });
}

function noAnswer(cause: unknown, { isLate, at }: { isLate: boolean; at: string }): NoAnswerError {
  return isLate
    ? new NoAnswerError('timed_out', `there was no answer in time from ${at}`, { cause })
    : new NoAnswerError('unreachable', `there is no service at ${at}, or it cannot be reached`, { cause });
}

async function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await pause(ms, undefined, { signal }).catch(() => {});
}
