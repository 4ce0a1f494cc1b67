// What can go wrong when the service is called: it answered with an error (`ServiceError` and its kinds, by
// status), it did not answer, or what it answered is not of the documented form. None of them holds the token.

/** As the last answer's headers told it (spec 8). */
export type RateLimit = {
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds since the epoch, by the service's clock. */
  readonly resetAtMs: number;
};

export type FieldFault = { readonly field: string; readonly message: string };

type ErrorAnswer = {
  /** The service's own short code (spec 7), `http_<status>` where it gave none. */
  readonly code: string;
  readonly message: string;
  readonly httpStatus: number;
  /** Undefined where the answer told none. */
  readonly rateLimit: RateLimit | undefined;
  readonly details: readonly FieldFault[];
};

/** An answer that is neither a success nor one of the kinds below, such as 500 or 405. */
export class ServiceError extends Error {
  override readonly name: string = 'ServiceError';
  readonly code: string;
  readonly httpStatus: number;
  readonly rateLimit: RateLimit | undefined;
  /** Which fields are at fault, where the service says it. */
  readonly details: readonly FieldFault[];

  constructor(answer: ErrorAnswer) {
    super(answer.message);
    this.code = answer.code;
    this.httpStatus = answer.httpStatus;
    this.rateLimit = answer.rateLimit;
    this.details = answer.details;
  }
}

/** 401: the token is missing, wrong or expired. */
export class UnauthorizedError extends ServiceError {
  override readonly name = 'UnauthorizedError';
}

/** 403: the token's permissions or the account's tier do not reach so far. */
export class ForbiddenError extends ServiceError {
  override readonly name = 'ForbiddenError';
}

/** 404: there is no such job, or it is another account's. */
export class NotFoundError extends ServiceError {
  override readonly name = 'NotFoundError';
}

/** 400 or 422: the request cannot be carried out as it is; `details` may tell why. */
export class InvalidRequestError extends ServiceError {
  override readonly name = 'InvalidRequestError';
}

/** 429, and the wait was longer than allowed or had been waited often enough. */
export class RateLimitedError extends ServiceError {
  override readonly name = 'RateLimitedError';
}

/** No answer at all. A job may have been created nevertheless. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
  readonly code: 'unreachable' | 'timed_out';

  constructor(code: NoAnswerError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The answer is not what the interface documents: a proxy's page, another service, or a bug. */
export class InvalidAnswerError extends Error {
  override readonly name = 'InvalidAnswerError';
  readonly code = 'invalid_answer';
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
