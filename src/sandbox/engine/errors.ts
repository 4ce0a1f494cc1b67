// What can go wrong with a conversion through nobody's mistake in this program. The message is one sentence that the
// job's owner reads: it says what to do differently, and never names a local path or an address inside our network.

export type ConversionErrorCode =
  /** The input is corrupted, empty, or not what its format says. */
  | 'INVALID_INPUT'
  /** The input's address may not be reached, does not answer, or answers too slowly. */
  | 'INPUT_UNREACHABLE'
  | 'INPUT_TOO_LARGE'
  | 'INPUT_TOO_LONG'
  | 'UNSUPPORTED_FORMAT'
  /** The output's address may not be reached, refuses the result, or takes too long; or the result is too large. */
  | 'OUTPUT_UNWRITABLE'
  /** The conversion itself took too long. */
  | 'TIMED_OUT'
  /** Ours: no room, or a program that cannot run. Another try may do. */
  | 'INTERNAL';

export class ConversionError extends Error {
  override readonly name = 'ConversionError';
  readonly code: ConversionErrorCode;

  /** `cause` may hold what a program said, paths included: for our log at most. */
  constructor(code: ConversionErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
