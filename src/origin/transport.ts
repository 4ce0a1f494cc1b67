// How the service is called: its errors, and which calls are tried again. After a 429 every call is tried again, at the reset
// that the answer names, since the service has done nothing. After no answer or a 5xx only a read is: a job may exist already.

import {
  type Api,
  createHttpClient,
  type HttpClient,
  type HttpClientOptions,
} from '../base/net/http-client.ts';
import { NoAnswerError, RateLimitedError, type RateLimit, toServiceError } from './errors.ts';
import { errorSchema } from './schemas.ts';

export type TransportOptions = HttpClientOptions & {
  /** Milliseconds since the epoch; used only where an answer has no `Date`. */
  readonly now?: () => number;
  /** How often a call is tried again at most (4). */
  readonly maxRetries?: number;
};

/** A hundred jobs with the longest addresses have less than a fifth of it. */
const ANSWER_MAX_BYTES = 4 * 1024 * 1024;
const MAX_RETRIES = 4;
/** The reset has whole seconds: it may seem to be over when it is not. */
const MIN_RESET_WAIT_MS = 250;

/** @throws TypeError for a base URL or token that cannot be used; it quotes neither. */
export function createTransport(options: TransportOptions): HttpClient {
  const { now = Date.now, maxRetries = MAX_RETRIES } = options;

  const toAnswerError: Api['toAnswerError'] = ({ status, headers }, json) => {
    const rateLimit = rateLimitOf(headers);
    const serverNowMs = Date.parse(headers.get('Date') ?? '') || now();
    return toServiceError({
      httpStatus: status,
      said: errorSchema.safeParse(json).data,
      rateLimit,
      retryAfterMs: rateLimit && rateLimit.resetAtMs - serverNowMs,
    });
  };

  const waitMs: Api['waitMs'] = (error, { call, retries, pauseMs }) => {
    if (retries >= maxRetries) return undefined;
    if (error instanceof RateLimitedError) return Math.max(MIN_RESET_WAIT_MS, error.retryAfterMs ?? pauseMs);
    const isUnknown = error instanceof NoAnswerError || error.httpStatus >= 500;
    return isUnknown && call.method === 'GET' ? pauseMs : undefined;
  };

  return createHttpClient(options, { basePath: '', answerMaxBytes: ANSWER_MAX_BYTES, toAnswerError, waitMs });
}

function rateLimitOf(headers: Headers): RateLimit | undefined {
  const [limit, remaining, reset] = ['Limit', 'Remaining', 'Reset'].map((name) => {
    const value = headers.get(`X-RateLimit-${name}`);
    return value !== null && /^\d{1,12}$/.test(value) ? Number(value) : undefined;
  });
  if (limit === undefined || remaining === undefined || reset === undefined) return undefined;
  return { limit, remaining, resetAtMs: reset * 1_000 };
}
