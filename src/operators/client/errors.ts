// What can go wrong when the API is called. No error holds the token.

import { AnswerError } from '../../base/errors.ts';

export { InvalidAnswerError, NoAnswerError } from '../../base/errors.ts';

/** An answer other than success. */
export class ApiAnswerError extends AnswerError {
  override readonly name = 'ApiAnswerError';
}
