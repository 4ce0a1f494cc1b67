// How the API is called: its errors, and which calls are tried again. After a lost connection, a 429 or a 503, every call
// is: reads change nothing, and every action carries an Idempotency-Key, by which the service knows the repeat.

import {
  type Api,
  createHttpClient,
  type HttpClient,
  type HttpClientOptions,
} from '../../base/net/http-client.ts';
import { ErrorAnswer } from '../kernel/operation/error.contract.ts';
import { ApiAnswerError, NoAnswerError } from './errors.ts';
import { lenient } from './lenient.ts';

/** A page of 200 deliveries with their longest texts, or 1,000 items of a job's story, has a quarter of it. */
const ANSWER_MAX_BYTES = 16 * 1024 * 1024;
const MAX_RETRIES = 4;
/** What did not answer for the whole time-out is likely to do so again. */
const MAX_RETRIES_WHEN_LATE = 1;
const RETRIED_STATUSES: readonly number[] = [429, 502, 503, 504];
/** The first try, whose connection was lost, is still being carried out. */
const RETRIED_CODE = 'in_progress';
/** The same query would take as long again. */
const NOT_RETRIED_CODE = 'query_timeout';

/** @throws TypeError for a base URL or token that cannot be used; it quotes neither. */
export function createTransport(options: HttpClientOptions): HttpClient {
  return createHttpClient(options, {
    basePath: '/api/v1',
    answerMaxBytes: ANSWER_MAX_BYTES,
    toAnswerError,
    waitMs,
  });
}

/** Newer services may have more codes. */
const Said = lenient(ErrorAnswer);

const toAnswerError: Api['toAnswerError'] = ({ status, headers }, json) => {
  const seconds = headers.get('Retry-After');
  return new ApiAnswerError({
    httpStatus: status,
    said: Said.safeParse(json).data,
    retryAfterMs: seconds !== null && /^\d{1,9}$/.test(seconds) ? Number(seconds) * 1_000 : undefined,
  });
};

const waitMs: Api['waitMs'] = (error, { retries, pauseMs }) => {
  if (error instanceof NoAnswerError) {
    return retries < (error.code === 'timed_out' ? MAX_RETRIES_WHEN_LATE : MAX_RETRIES) ? pauseMs : undefined;
  }
  const { code, httpStatus, retryAfterMs = 0 } = error;
  const isPassing = RETRIED_STATUSES.includes(httpStatus) || code === RETRIED_CODE;
  if (!isPassing || code === NOT_RETRIED_CODE || retries >= MAX_RETRIES) return undefined;
  return Math.max(pauseMs, retryAfterMs);
};
