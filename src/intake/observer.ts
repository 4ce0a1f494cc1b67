// The log of answers with 503. Under a flood each line would cost more than its answer, so they are limited by their cause.

import type { Logger } from 'pino';
import { describeError, UnavailableError } from '../errors.ts';
import { failureOf } from '../ledger/index.ts';
import { createLimitedLines } from '../http/index.ts';

export type UnavailableLines = {
  /** `fields` of the delivery's line; `cause` is what kept it from being recorded. */
  readonly write: (fields: object, cause: unknown) => void;
  /** Writes what is left and stops. */
  readonly close: () => void;
};

export function createUnavailableLines({ log }: { log: Logger }): UnavailableLines {
  // As the lines of deliveries, they hold no object of a request.
  const lines = log.child({}, { redact: [] });
  const limited = createLimitedLines({
    tellRest: (causes) => log.warn({ causes }, 'more deliveries unavailable'),
  });
  return {
    write: (fields, cause) => {
      const err = describeError(cause);
      limited.write(kindOf(cause) ?? err.code ?? err.name, () => lines.warn({ ...fields, err }, 'delivery'));
    },
    close: limited.close,
  };
}

/** A full disk must not hide behind a lock that is waited for. */
function kindOf(cause: unknown): string | undefined {
  const isLedgers = cause instanceof UnavailableError && cause.code === 'ledger';
  return isLedgers ? `ledger: ${failureOf(cause.cause).kind}` : undefined;
}
