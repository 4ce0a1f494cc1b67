// Why a conversion failed, other than by a bug. The message is one sentence for the client that created the job. It never
// contains a local path or an address inside our network.

export type ConversionErrorCode =
  /** The input is corrupted, empty, or not of the format that the job names. */
  | 'INVALID_INPUT'
  /** The input's address may not be reached, does not answer, or answers too slowly. */
  | 'INPUT_UNREACHABLE'
  | 'INPUT_TOO_LARGE'
  | 'INPUT_TOO_LONG'
  | 'UNSUPPORTED_FORMAT'
  /** The output's address may not be reached, rejects the output, or takes too long; or the output is too large. */
  | 'OUTPUT_UNWRITABLE'
  /** The conversion took too long, not counting download and upload. */
  | 'TIMED_OUT'
  /** Our fault: a full disk, or a program that cannot run. A retry can succeed. */
  | 'INTERNAL';

export class ConversionError extends Error {
  override readonly name = 'ConversionError';
  readonly code: ConversionErrorCode;

  /** `cause` can contain the output of a program, with paths: at most for our log. */
  constructor(code: ConversionErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
