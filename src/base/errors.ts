// The errors that several rooms throw on purpose, each with a literal `name` and a stable `code`. Expected outcomes (a duplicate,
// a conflict, a returned publication) are return values instead. No message may contain a secret, a body or a connection string.

import type { SessionFault } from './closed-sets.ts';

/** The environment or a sources file is not valid. `faults` names every variable at fault, and never a value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly code = 'config_invalid';
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(
      `the configuration has ${faults.length} fault(s):\n${faults.map((fault) => `  - ${fault}`).join('\n')}`,
    );
    this.faults = faults;
  }
}

/** The database's schema, or our role's rights on it, do not fit this program. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError';
  readonly code:
    | 'schema_newer'
    | 'schema_older'
    | 'schema_unreleased'
    | 'migration_failed'
    | 'roles_unfit'
    | 'server_unfit';

  constructor(code: SchemaError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A session with Postgres is not what our promises depend on, or there is none. It is closed; a later one may be. */
export class SessionError extends Error {
  override readonly name = 'SessionError';
  /** The last two are of statements, and not of sessions that begin. */
  readonly code: SessionFault | 'unanswered' | 'unreplicated';

  constructor(code: SessionError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** What is still needed of an old day of deliveries could not be saved. So that its bodies are not lost, the day is kept. */
export class DayKeptError extends Error {
  override readonly name = 'DayKeptError';
  readonly code = 'day_kept';

  constructor(day: string, cause: unknown) {
    super(`the deliveries of ${day} are kept: ${describeError(cause).message}`, { cause });
  }
}

/** A delivery could not be recorded now. It is answered with 503, and the sender should try again. */
export class UnavailableError extends Error {
  override readonly name = 'UnavailableError';
  readonly code: 'full' | 'late' | 'ledger';

  constructor(code: UnavailableError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/**
 * The broker, or another server at its address, does not let us work. The message says who has to change what.
 * - `access_refused`: the name, the password, the virtual host, or a permission.
 * - `limit_reached`: the account, the virtual host or the broker may not have more connections.
 * - `wrong_port`: what answers there does not speak AMQP, or TLS is on one side only.
 * - `tls_failed`: one side does not trust the other's certificate, or we have none.
 * - `broker_refused`: another reason, which the message quotes.
 */
export class BrokerRefusalError extends Error {
  override readonly name = 'BrokerRefusalError';
  readonly code: 'access_refused' | 'limit_reached' | 'wrong_port' | 'tls_failed' | 'broker_refused';

  constructor(code: BrokerRefusalError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** An API that we call answered with something other than success. */
export class AnswerError extends Error {
  override readonly name: string = 'AnswerError';
  /** The API's own (`forbidden`, `invalid_cursor`, …); `http_<status>` if it gave none. */
  readonly code: string;
  readonly httpStatus: number;
  /** How long the answer asks to wait; undefined if it does not say. */
  readonly retryAfterMs: number | undefined;

  constructor(answer: {
    readonly httpStatus: number;
    readonly said: { readonly error: string; readonly message: string } | undefined;
    readonly retryAfterMs: number | undefined;
  }) {
    const { httpStatus, said, retryAfterMs } = answer;
    super(said?.message ?? `the service answered with status ${httpStatus}`);
    this.code = said?.error ?? `http_${httpStatus}`;
    this.httpStatus = httpStatus;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * An API that we call gave no answer, or one that was cut. Whether the call was carried out is unknown; with `tls_failed` it was not
 * sent.
 */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
  readonly code: 'unreachable' | 'timed_out' | 'tls_failed' | 'cut';

  constructor(code: NoAnswerError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The answer does not have the documented form: it comes from a proxy or another service, or there is a bug. */
export class InvalidAnswerError extends Error {
  override readonly name = 'InvalidAnswerError';
  readonly code = 'invalid_answer';
}

/** A wrong command line. The message is for a person. Exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly code = 'usage';
}

export type ErrorDescription = {
  readonly name: string;
  readonly code?: string;
  readonly message: string;
  /** Why the schema does not fit. It comes from statements of ours, and never from a sender. Not `cause`, which pino would add to the message. */
  readonly because?: ErrorDescription;
};

/** The part of an error that may be logged: not its `detail`, client or parameters, which can contain text from a sender. */
export function describeError(error: unknown): ErrorDescription {
  if (!(error instanceof Error)) return { name: 'Unknown', message: typeof error };
  const code = (error as { code?: unknown }).code;
  // Postgres quotes the offending value in messages of classes 22 (data) and 23 (constraints).
  const quotesContent = typeof code === 'string' && /^2[23][0-9A-Z]{3}$/.test(code);
  // An AggregateError (no address of a host could be reached) has an empty message.
  const inner = error instanceof AggregateError ? (error.errors[0] as unknown) : undefined;
  const message = error.message || (inner instanceof Error ? inner.message : '');
  const hasCause = error instanceof SchemaError && error.cause !== undefined;
  return {
    name: error.name,
    ...(typeof code === 'string' || typeof code === 'number' ? { code: String(code) } : {}),
    message: quotesContent ? refusal(error) : message,
    ...(hasCause && { because: describeError(error.cause) }),
  };
}

/** Constraints and indexes have their names from us. */
function refusal(error: Error): string {
  const { constraint } = error as { constraint?: unknown };
  const by = typeof constraint === 'string' ? ` (${constraint})` : '';
  return `the database refused a value${by}`;
}
