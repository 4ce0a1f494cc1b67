// Calls a JSON API: requests with a bearer token, answers within limits of time and size, and retries. The client of the
// operators' API and that of the conversion service use it; each says what it retries. The token is sent only to the base URL,
// and no error contains it.

import { setTimeout as setTimer } from 'node:timers/promises';
import type { z } from 'zod';
import { AnswerError, InvalidAnswerError, NoAnswerError } from '../errors.ts';
import { parseIfJson } from '../json/json.ts';
import { type Bytes, bytesOf } from './byte-stream.ts';
import { HTTPS_WORDS, tlsFaultOf } from './tls-fault.ts';

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export type Call = {
  readonly method: 'GET' | 'POST';
  /** Below the API's base path, each part of it encoded. */
  readonly path: string;
  readonly query?: Query | undefined;
  readonly body?: unknown;
  readonly accept?: string;
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal | undefined;
};

export type HttpClientOptions = {
  /** Of the service, with the path before the API's own if it has one: `https://hooks.example.com`. */
  readonly url: string;
  /** Sent to this service alone. */
  readonly token: string;
  readonly fetch?: typeof globalThis.fetch;
  /** For one try: of JSON until the last byte, of a stream until its head (30,000). */
  readonly timeoutMs?: number;
  /** A stream that sends nothing for so long is cut (60,000: live events have a heartbeat every 15 s). */
  readonly silenceMs?: number;
  /** A longer wait is an error at once (60,000: the window of both APIs' limits). */
  readonly maxWaitMs?: number;
  /** Called before a wait that a person would notice. */
  readonly onWait?: (waitMs: number, error: AnswerError | NoAnswerError) => void;
  /** Ends early when the signal is aborted. */
  readonly sleep?: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
};

/** What differs between APIs. */
export type Api = {
  /** Between the base URL and the path of a call: empty or `/api/v1`. */
  readonly basePath: string;
  readonly answerMaxBytes: number;
  readonly toAnswerError: (response: Response, json: unknown) => AnswerError;
  /** How long to wait before the next try; undefined where there is none. `pauseMs` is the usual wait. */
  readonly waitMs: (
    error: AnswerError | NoAnswerError,
    attempt: { readonly call: Call; readonly retries: number; readonly pauseMs: number },
  ) => number | undefined;
};

export type HttpClient = {
  readonly json: <T>(call: Call, schema: z.ZodType<T>) => Promise<T>;
  /** An answer of any length. A connection that is lost while it is read throws `NoAnswerError` with the code `cut`. */
  readonly stream: (call: Call) => Bytes;
  /** As `stream`, but resolves when the answer has begun. Abort the call's signal if you may not read it to its end. */
  readonly open: (call: Call) => Promise<Bytes>;
};

const TIMEOUT_MS = 30_000;
const MAX_WAIT_MS = 60_000;
const SILENCE_MS = 60_000;
/** Between tries: 0.25 s, doubled each time up to 5 s. */
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 5_000;
/** Shorter waits are not reported. */
const NOTICED_MS = 2_000;
/** Characters that a header may have. Checked here, since an error of `fetch` would quote them. */
const TOKEN = /^[\x21-\x7e]+$/;

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

/** @throws TypeError for a URL or token that cannot be used; it quotes neither. */
export function createHttpClient(options: HttpClientOptions, api: Api): HttpClient {
  const { token, fetch = globalThis.fetch, timeoutMs = TIMEOUT_MS, maxWaitMs = MAX_WAIT_MS } = options;
  const { onWait, sleep = pause, silenceMs = SILENCE_MS } = options;
  const fault = tokenFault(token) ?? addressFault(options.url);
  if (fault !== undefined) throw new TypeError(fault);
  const base = new URL(options.url).href.replace(/\/+$/, '') + api.basePath;

  function send(call: Call, signal: AbortSignal): Promise<Response> {
    const { method, path, query, body, accept = 'application/json', idempotencyKey } = call;
    return fetch(base + path + toQuery(query), {
      method,
      headers: {
        Accept: accept,
        Authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      // The token is for this address and no other.
      redirect: 'manual',
      signal,
    });
  }

  const readJson = async (response: Response) => parseIfJson(await readText(response, api.answerMaxBytes));

  /** One try. The time-out covers `read`. */
  async function attempt<T>(call: Call, read: (response: Response) => Promise<T>): Promise<T> {
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), timeoutMs);
    const signals = call.signal === undefined ? [timeout.signal] : [timeout.signal, call.signal];
    let response: Response;
    let said: unknown;
    try {
      response = await send(call, AbortSignal.any(signals));
      if (response.ok) return await read(response);
      said = await readJson(response);
    } catch (error) {
      call.signal?.throwIfAborted();
      if (error instanceof InvalidAnswerError) throw error;
      const untrusted = tlsFaultOf(error, { address: new URL(base).host, ...HTTPS_WORDS });
      if (untrusted !== undefined) throw new NoAnswerError('tls_failed', untrusted, { cause: error });
      const isLate = timeout.signal.aborted;
      const message = isLate ? `there was no answer in time from ${base}` : whyUnreachable(error, base);
      throw new NoAnswerError(isLate ? 'timed_out' : 'unreachable', message, { cause: error });
    } finally {
      clearTimeout(timer);
    }
    call.signal?.throwIfAborted();
    throw api.toAnswerError(response, said);
  }

  async function withRetries<T>(call: Call, read: (response: Response) => Promise<T>): Promise<T> {
    for (let retries = 0; ; retries += 1) {
      call.signal?.throwIfAborted();
      try {
        return await attempt(call, read);
      } catch (error) {
        if (!(error instanceof AnswerError || error instanceof NoAnswerError)) throw error;
        if (error.code === 'tls_failed') throw error; // until somebody changes a certificate
        const pauseMs = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** retries);
        const waitMs = api.waitMs(error, { call, retries, pauseMs });
        const isTooLong = error instanceof AnswerError && (waitMs ?? 0) > maxWaitMs;
        if (waitMs === undefined || isTooLong) throw error;
        if (waitMs >= NOTICED_MS) onWait?.(waitMs, error);
        await sleep(waitMs, call.signal);
      }
    }
  }

  async function open(call: Call): Promise<Bytes> {
    const silent = new AbortController();
    const signals = call.signal === undefined ? [silent.signal] : [silent.signal, call.signal];
    const listening = { ...call, signal: AbortSignal.any(signals) };
    const { body } = await withRetries(listening, (found) => Promise.resolve(found));
    return bytesOf(body, call.signal, { silenceMs, onSilence: () => silent.abort() });
  }

  async function* stream(call: Call): Bytes {
    yield* await open(call);
  }

  return {
    json: async (call, schema) => checked(call, schema, await withRetries(call, readJson)),
    stream,
    open,
  };
}

/** What a server of TLS does when it is asked in plain text, or wants a certificate. */
const CLOSED = ['UND_ERR_SOCKET', 'ECONNRESET'];

function whyUnreachable(error: unknown, base: string): string {
  const { code } = ((error as Error).cause ?? {}) as { code?: unknown };
  const { protocol, host } = new URL(base);
  if (!CLOSED.includes(String(code))) return `there is no service at ${base}, or it cannot be reached`;
  const why =
    protocol === 'https:'
      ? `it may want a certificate of its clients, by ${HTTPS_WORDS.certificate}`
      : 'if it speaks TLS, its address begins with https://';
  return `${host} closed the connection without an answer: ${why}`;
}

function toQuery(query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.append(name, String(value));
  }
  return parameters.size === 0 ? '' : `?${parameters.toString()}`;
}

async function readText(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new InvalidAnswerError('the answer is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function checked<T>({ method, path }: Call, schema: z.ZodType<T>, json: unknown): T {
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  const fields = result.error.issues.map((issue) => issue.path.join('.') || 'the whole').slice(0, 5);
  throw new InvalidAnswerError(`${method} ${path} was answered in another form: ${fields.join(', ')}`);
}

const pause: NonNullable<HttpClientOptions['sleep']> = (ms, signal) =>
  setTimer(ms, undefined, { signal }).catch(() => {});
