// Words of which there are so many and no more, each list with its type: values of the tables, and labels of the metrics. Since a
// label takes no other value, the number of series is bounded, and each is there from the first scrape.

/** What becomes of a delivery. */
export const DELIVERY_OUTCOMES = [
  'accepted',
  'duplicate',
  'conflict',
  'quarantined',
  'malformed',
  'unauthorized',
  'refused',
] as const;
export type DeliveryOutcome = (typeof DELIVERY_OUTCOMES)[number];

/** `unavailable` was answered with 503, and says nothing of the delivery. */
export const ANSWERS = [...DELIVERY_OUTCOMES, 'unavailable'] as const;
export type AnswerOutcome = (typeof ANSWERS)[number];

export const BATCH_RESULTS = ['committed', 'failed'] as const;

export const PUBLICATION_RESULTS = ['confirmed', 'returned', 'nacked', 'failed'] as const;
export type PublicationResult = (typeof PUBLICATION_RESULTS)[number];

/** Our two ports. */
export const FACES = ['intake', 'operators'] as const;
export type Face = (typeof FACES)[number];

/** Why we rejected or ended a connection. */
export const CONNECTION_ENDS = [
  /** Rejected: its address has all connections that it may have, with a whole request under way on each. */
  'address',
  /** Rejected: all connections are taken, with a whole request under way on each. */
  'full',
  /** Another needed its place: it was idle for longest, or it stalled in the middle of a stranger's request. */
  'room',
  /** Was idle, and had never brought a verified delivery or an admitted token. */
  'idle',
  /** Did not read its answer. */
  'untaken',
  /** Pipelined more requests than are taken at once. */
  'pipelined',
] as const;
export type ConnectionEnd = (typeof CONNECTION_ENDS)[number];

/** What a request that reached no route probably was (http/unparsed.ts). */
export const UNPARSED_KINDS = [
  'tls',
  'proxy_protocol',
  'http2',
  'repeated_length',
  'headers_too_large',
  'timeout',
  'cut',
  'no_host',
  'connect',
  'expectation',
  'other',
] as const;
export type UnparsedKind = (typeof UNPARSED_KINDS)[number];

/** A replica's pools of connections to Postgres. */
export const POOLS = [
  'intake',
  'background',
  'counts',
  'replica',
  'looks',
  'lease',
  'relay',
  'results',
  'beside the relay',
  'operators',
  'access',
] as const;
export type PoolName = (typeof POOLS)[number];

/** Why a session with Postgres cannot be used (errors.ts). */
export const SESSION_FAULTS = [
  'session_unfit',
  'read_only',
  'pooler_unfit',
  'tls_failed',
  'starved',
] as const;
export type SessionFault = (typeof SESSION_FAULTS)[number];

/** Why Postgres refused a statement or a session. */
export const REFUSALS = [
  'read_only',
  'starting_or_stopping',
  'connections',
  'disk_full',
  'memory',
  'permission',
  'timeout',
  'deadlock_or_serialization',
  'other',
] as const;
export type Refusal = (typeof REFUSALS)[number];

/** What V8 calls a garbage collection. */
export const GC_KINDS = ['major', 'minor', 'incremental', 'weakcb'] as const;
