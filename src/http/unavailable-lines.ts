// The log of answers with 503: a line each, until a cause has had its lines of this second, and then a line with counts
// at its end. Under a flood each of them would cost more than the answer.

import type { Logger } from 'pino';
import { describeError, UnavailableError } from '../errors.ts';
import { failureOf } from '../ledger/failures.ts';

export type UnavailableLines = {
  /** `fields` of the delivery's line; `cause` is what kept it from being recorded. */
  readonly write: (fields: object, cause: unknown) => void;
  /** Writes what is left and stops. */
  readonly close: () => void;
};

const INTERVAL_MS = 1_000;
/** A second's trouble can be understood from these. Causes are few: codes of our own, and kinds of failures. */
const LINES_PER_CAUSE = 5;

export function createUnavailableLines({ log }: { log: Logger }): UnavailableLines {
  // As the lines of deliveries, they hold no object of a request.
  const lines = log.child({}, { redact: [] });
  let causes = new Map<string, number>(); // of this second

  function write(fields: object, cause: unknown): void {
    const err = describeError(cause);
    const kind = kindOf(cause) ?? err.code ?? err.name;
    const count = (causes.get(kind) ?? 0) + 1;
    causes.set(kind, count);
    if (count <= LINES_PER_CAUSE) lines.warn({ ...fields, err }, 'delivery');
  }

  function writeCounts(): void {
    const more = Array.from(causes, ([kind, count]) => [kind, count - LINES_PER_CAUSE] as const);
    const untold = Object.fromEntries(more.filter(([, count]) => count > 0));
    causes = new Map();
    if (Object.keys(untold).length > 0) log.warn({ causes: untold }, 'more deliveries unavailable');
  }

  const timer = setInterval(writeCounts, INTERVAL_MS).unref();
  return {
    write,
    close: () => {
      clearInterval(timer);
      writeCounts();
    },
  };
}

/** A full disk must not hide behind a lock that is waited for. */
function kindOf(cause: unknown): string | undefined {
  const isLedgers = cause instanceof UnavailableError && cause.code === 'ledger';
  return isLedgers ? `ledger: ${failureOf(cause.cause).kind}` : undefined;
}
