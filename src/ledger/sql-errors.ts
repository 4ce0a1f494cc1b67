// What an error of the driver means, by the server's SQLSTATE.

/** A SQLSTATE of Postgres, or the system's error code of a failed connection (`ECONNREFUSED`); '' if there is none. */
export const codeOf = (error: unknown): string => {
  const value = (error as { code?: unknown } | null)?.code;
  return typeof value === 'string' ? value : '';
};

/** A deadlock or a serialization failure: nothing was written, and the same statement may succeed the next time. */
export function isRetryable(error: unknown): boolean {
  return codeOf(error) === '40P01' || codeOf(error) === '40001';
}

/** The server cancelled the statement at its statement_timeout. */
export function isTimeout(error: unknown): boolean {
  return codeOf(error) === '57014';
}

/** The server gave the statement up at its lock_timeout. */
export function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === '55P03';
}

/** There is no partition for this day: reported as a check violation that names no constraint. */
export function isMissingPartition(error: unknown): boolean {
  return codeOf(error) === '23514' && (error as { constraint?: unknown }).constraint === undefined;
}

/** The database refused the statement for its values (data, constraint, too large): it would refuse a repeat, too. */
export function isRefusedContent(error: unknown): boolean {
  return /^(22|23|54)[0-9A-Z]{3}$/.test(codeOf(error)) && !isMissingPartition(error);
}
