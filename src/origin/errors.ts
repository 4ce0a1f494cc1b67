// What can go wrong when the service is called: `ServiceError` and its kinds, by status, for an answer other than success;
// `NoAnswerError` and `InvalidAnswerError` for the rest. No error contains the token.

import { AnswerError } from '../base/errors.ts';

export { InvalidAnswerError, NoAnswerError } from '../base/errors.ts';

/** From the headers of the last answer (service interface 8). */
export type RateLimit = {
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds since the epoch, by the service's clock. */
  readonly resetAtMs: number;
};

export type FieldFault = { readonly field: string; readonly message: string };

type ErrorAnswer = {
  readonly httpStatus: number;
  readonly said: { error: string; message: string; details: readonly FieldFault[] } | undefined;
  readonly rateLimit: RateLimit | undefined;
  readonly retryAfterMs: number | undefined;
};

/** An answer that is neither a success nor one of the kinds below, such as 500 or 405. */
export class ServiceError extends AnswerError {
  override readonly name: string = 'ServiceError';
  /** Undefined if the answer has none. */
  readonly rateLimit: RateLimit | undefined;
  /** Which fields are wrong, if the service says so. */
  readonly details: readonly FieldFault[];

  constructor(answer: ErrorAnswer) {
    super(answer);
    this.rateLimit = answer.rateLimit;
    this.details = answer.said?.details ?? [];
  }
}

/** 401: the token is missing, wrong or expired. */
export class UnauthorizedError extends ServiceError {
  override readonly name = 'UnauthorizedError';
}

/** 403: the token's permissions or the account's tier do not allow this. */
export class ForbiddenError extends ServiceError {
  override readonly name = 'ForbiddenError';
}

/** 404: there is no such job, or it is another account's. */
export class NotFoundError extends ServiceError {
  override readonly name = 'NotFoundError';
}

/** 400 or 422: the request cannot be carried out in this form; `details` may say why. */
export class InvalidRequestError extends ServiceError {
  override readonly name = 'InvalidRequestError';
}

/** 429, and the wait was longer than allowed or had been waited often enough. */
export class RateLimitedError extends ServiceError {
  override readonly name = 'RateLimitedError';
}

const KINDS: Readonly<Record<number, typeof ServiceError>> = {
  400: InvalidRequestError,
  401: UnauthorizedError,
  403: ForbiddenError,
  404: NotFoundError,
  422: InvalidRequestError,
  429: RateLimitedError,
};

export function toServiceError(answer: ErrorAnswer): ServiceError {
  return new (KINDS[answer.httpStatus] ?? ServiceError)(answer);
}
