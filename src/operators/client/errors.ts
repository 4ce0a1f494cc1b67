// What can go wrong when the API is called: it answered with an error (its own code and words), it did not answer, or
// what it answered is not of the documented form. None of them ever holds the token.

/** An answer other than success. `code` is the API's own (`forbidden`, `invalid_cursor`, …), `http_<status>` without one. */
export class ApiAnswerError extends Error {
  override readonly name = 'ApiAnswerError';
  readonly code: string;
  readonly httpStatus: number;
  /** What the answer asks to wait; undefined where it does not say. */
  readonly retryAfterMs: number | undefined;

  constructor(answer: {
    readonly code: string;
    readonly message: string;
    readonly httpStatus: number;
    readonly retryAfterMs: number | undefined;
  }) {
    super(answer.message);
    this.code = answer.code;
    this.httpStatus = answer.httpStatus;
    this.retryAfterMs = answer.retryAfterMs;
  }
}

/** No answer at all, or one that was cut. Whether an action was carried out is unknown: its key makes a repeat safe. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
  readonly code: 'unreachable' | 'timed_out' | 'cut';

  constructor(code: NoAnswerError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A proxy's page, another service, or a bug. */
export class InvalidAnswerError extends Error {
  override readonly name = 'InvalidAnswerError';
  readonly code = 'invalid_answer';
}
