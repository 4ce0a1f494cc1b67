// Why a write failed, for the log: the SQLSTATE, the name of the constraint, and a plain sentence. Never the error's own message,
// detail or context, since those can quote a delivery.

import type { Logger } from 'pino';
import type { Refusal } from '../../base/closed-sets.ts';
import { codeOf, constraintOf, type Fault, faultOf, isMissingPartition } from './sql-errors.ts';

export type Failure = {
  readonly kind: string;
  readonly code: string | undefined;
  /** That refused a row. */
  readonly constraint: string | undefined;
  readonly because: string;
};

type Kind = { readonly kind: string; readonly codes: RegExp; readonly because: string };

/** The first one whose codes match counts. See https://www.postgresql.org/docs/current/errcodes-appendix.html. */
const KINDS: readonly Kind[] = [
  { kind: 'disk_full', codes: /^53100$/, because: "the database's disk is full" },
  { kind: 'out_of_memory', codes: /^53200$/, because: 'the database is out of memory' },
  { kind: 'too_many_connections', codes: /^53300$/, because: 'the database has no connection left for us' },
  {
    kind: 'read_only',
    codes: /^(25006|read_only)$/,
    because: 'the database is read-only: a standby, or configured so',
  },
  {
    kind: 'not_permitted',
    codes: /^42501$/,
    because: 'the role of DATABASE_URL may not do this: run "tallyhook migrate" with MIGRATION_DATABASE_URL',
  },
  { kind: 'schema', codes: /^42/, because: "the database's schema is not what this program was written for" },
  {
    kind: 'statement_timeout',
    codes: /^57014$/,
    because: 'the write took too long, so the database stopped it',
  },
  {
    kind: 'lock_timeout',
    codes: /^55P03$/,
    because: 'the write waited too long for a lock of another session',
  },
  { kind: 'deadlock', codes: /^40/, because: 'writes blocked each other repeatedly' },
  {
    kind: 'shutdown',
    codes: /^57P0/,
    because: 'the database shuts down, starts up, or ended our connection',
  },
  {
    kind: 'login',
    codes: /^(28|3D)/,
    because: 'the database refused the login, or does not exist under this name',
  },
  { kind: 'broken_storage', codes: /^(58|XX)/, because: 'the database cannot read or write its own files' },
  {
    kind: 'session_unfit',
    codes: /^(session_unfit|pooler_unfit|server_unfit|tls_failed)$/,
    because: 'no session with the database is as it must be; the lines about sessions say why',
  },
  {
    kind: 'no_answer',
    codes: /^(unanswered|starved)$/,
    because: 'the database did not answer earlier statements, or gave us no session',
  },
  {
    kind: 'unreplicated',
    codes: /^unreplicated$/,
    because: 'somebody cancelled the wait for a standby, which may not have the write',
  },
  { kind: 'unreachable', codes: /^(08...|E[A-Z]+_?[A-Z]*)$/, because: 'the database cannot be reached' },
];

/** The database refused a row. */
const FAULTS: Readonly<Record<Fault, { kind: string; because: string }>> = {
  delivery: { kind: 'refused_value', because: 'the database refused a value of a delivery' },
  ledger: {
    kind: 'refused_by_itself',
    because:
      'the database refused what the ledger itself writes: after a restore its sequences may be behind',
  },
  added: {
    kind: 'added_rule',
    because: 'the database refused it by a constraint or trigger that is not of our migrations',
  },
};
const NO_PARTITION = { kind: 'no_partition', because: 'there is no partition for today; it is made now' };
const NO_ANSWER = {
  kind: 'no_answer',
  because: 'the database did not answer in time, or the connection broke',
};
const OTHER = { kind: 'other', because: "an unknown error; the database's own log may say more" };

/** The driver's own errors have no code; these words identify them. */
const GAVE_UP = /timeout|terminated|not queryable/i;

export function failureOf(error: unknown): Failure {
  const [code, constraint] = [codeOf(error) || undefined, constraintOf(error)];
  const { kind, because } = kindOf(error, code);
  const named = constraint === undefined ? because : `${because} (${constraint})`;
  return { kind, code, constraint, because: named };
}

const REFUSALS: Readonly<Record<string, Refusal>> = {
  read_only: 'read_only',
  shutdown: 'starting_or_stopping',
  too_many_connections: 'connections',
  disk_full: 'disk_full',
  out_of_memory: 'memory',
  not_permitted: 'permission',
  login: 'permission',
  statement_timeout: 'timeout',
  lock_timeout: 'timeout',
  deadlock: 'deadlock_or_serialization',
};

/** How Postgres refused, for the metrics. Undefined if it was not Postgres that said so. */
export function refusalOf(error: unknown): Refusal | undefined {
  const { kind, code } = failureOf(error);
  return SQLSTATE.test(code ?? '') ? (REFUSALS[kind] ?? 'other') : undefined;
}

/** All other codes are of the system, or of us. */
const SQLSTATE = /^[0-9A-Z]{5}$/;

/** The database could not be asked, or its answer was lost: the same may succeed later. */
export const isAway = (error: unknown): boolean =>
  [
    'unreachable',
    'no_answer',
    'shutdown',
    'too_many_connections',
    'read_only',
    'session_unfit',
    'unreplicated',
  ].includes(failureOf(error).kind);

function kindOf(error: unknown, code: string | undefined): { kind: string; because: string } {
  if (isMissingPartition(error)) return NO_PARTITION;
  if (code === undefined) return error instanceof Error && GAVE_UP.test(error.message) ? NO_ANSWER : OTHER;
  const fault = faultOf(error);
  if (fault !== undefined) return FAULTS[fault];
  return KINDS.find(({ codes }) => codes.test(code)) ?? OTHER;
}

/** Often enough to see that a failure lasts. While the database is down, some hundred writes fail each second. */
const INTERVAL_MS = 10_000;

/** Logs failed writes: each kind and constraint at once, and then no more than once in INTERVAL_MS, with how many there were since. */
export function createFailureLog(options: {
  /** Monotonic milliseconds. */
  now: () => number;
  log: Logger;
}): (error: unknown) => void {
  const { now, log } = options;
  const seen = new Map<string, { loggedMs: number; since: number }>(); // as many as there are kinds and constraints
  return (error) => {
    const { kind, code, constraint, because } = failureOf(error);
    const key = `${kind} ${constraint}`;
    const before = seen.get(key);
    if (before !== undefined && now() - before.loggedMs < INTERVAL_MS) {
      before.since += 1;
      return;
    }
    seen.set(key, { loggedMs: now(), since: 0 });
    log.error({ kind, code, constraint, failedSince: before?.since }, `a write failed: ${because}`);
  };
}
