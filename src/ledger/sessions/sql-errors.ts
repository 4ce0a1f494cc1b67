// What an error of the driver means: whether the same statement may succeed the next time, whether it was rolled back, and whose
// fault it is. By the server's SQLSTATE, and by the name of the constraint, since one SQLSTATE has causes on both sides.

/** A SQLSTATE of Postgres, or the system's error code of a failed connection (`ECONNREFUSED`); '' if there is none. */
export const codeOf = (error: unknown): string => {
  const value = (error as { code?: unknown } | null)?.code;
  return typeof value === 'string' ? value : '';
};

/** Postgres itself has answered with it: it is not of the connection, nor a silence. */
export const isOfServer = (error: unknown): boolean =>
  (error as { severity?: unknown } | null)?.severity !== undefined;

/** Of a name in a database: at most 63 bytes. Anything else could be text that a trigger has put there. */
const NAME = /^[\w$]{1,63}$/;

/** The constraint or unique index that refused a row; undefined if the server names none. */
export const constraintOf = (error: unknown): string | undefined => {
  const value = (error as { constraint?: unknown } | null)?.constraint;
  return typeof value === 'string' && NAME.test(value) ? value : undefined;
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

/**
 * Whose fault it is that the database refuses a row:
 * - `delivery`: a value that it brought cannot be stored. Each repeat would be refused.
 * - `ledger`: what we or the database add to it. The same delivery is recorded once that is repaired.
 * - `added`: a rule that is in none of our migrations, or an error that no value of ours should cause. The rule may be about this
 *   row alone or about all.
 */
export type Fault = 'delivery' | 'ledger' | 'added';

type Refusal = { readonly codes: RegExp; readonly constraint?: RegExp; readonly fault: Fault };

/**
 * The first that matches counts. See https://www.postgresql.org/docs/current/errcodes-appendix.html. Our other constraints cannot
 * refuse a delivery: `on conflict` takes the keys of jobs and of events, and no column is null that must not be.
 */
const REFUSALS: readonly Refusal[] = [
  // The status of an event, and a percentage that it must have or must not have.
  { codes: /^23514$/, constraint: /^events(_status)?_check$/, fault: 'delivery' },
  // A text that is too long or has characters that the database's encoding lacks, a time that it cannot hold, a malformed value.
  { codes: /^22(001|007|008|021|P02|P03|P05)$/, fault: 'delivery' },
  // A text that is too long for an index: the index is named. Without a name it is a limit of the server (below).
  { codes: /^54000$/, constraint: /./, fault: 'delivery' },
  // Numbers and ids that the ledger draws itself. After a restore of data alone, its sequence may be behind its tables.
  {
    codes: /^23505$/,
    constraint: /^(events|outbox_batches|outbox_held|deliveries(_\d{8})?)_pkey$/,
    fault: 'ledger',
  },
  // The words for outcomes and states are the program's. An older schema may not know them.
  { codes: /^23514$/, constraint: /^(deliveries_outcome|outbox_held_state)_check$/, fault: 'ledger' },
  // A sequence is at its end. No transaction id is left. The stack is too small, or a row has too many columns.
  { codes: /^(2200H|54...)$/, fault: 'ledger' },
  // All other constraints, also not null and foreign keys; errors that a trigger, a rule or a domain raises; numbers out of range,
  // which only our counters can be.
  { codes: /^(22|23|38|39|44|P0)...$/, fault: 'added' },
];

/** Undefined if the database has not refused a row, but failed in another way, or could not be asked. */
export function faultOf(error: unknown): Fault | undefined {
  if (isMissingPartition(error)) return 'ledger';
  const [code, name] = [codeOf(error), constraintOf(error)];
  return REFUSALS.find(
    ({ codes, constraint }) => codes.test(code) && (constraint === undefined || constraint.test(name ?? '')),
  )?.fault;
}

/** The server has given up the statement, which is a transaction of its own: nothing of it was written. */
export const isRolledBack = (error: unknown): boolean =>
  isRetryable(error) || isTimeout(error) || isLockTimeout(error) || faultOf(error) !== undefined;
