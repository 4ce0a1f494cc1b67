// The tables, and all writes that more than one room makes: what an event is, how a body is understood, how deliveries are
// recorded, partitions, retention, migrations. Knows nothing of the rooms that write to it or read it.
// The door of this room: other rooms import from this file alone.

export { type AddressCounts, busiest, countAddress } from './address-counts.ts';
export { textArray } from './arrays.ts';
export { type Counts, composeCounts, createUpkeep, prepareLedger } from './compose.ts';
export {
  type Conflicts,
  type FirstBody,
  correctContentHash,
  createConflictCheck,
  findAlike,
  firstBodiesAhead,
} from './conflicts.ts';
export {
  type DatabaseConnection,
  type Statement,
  connectDatabase,
  isMissingPartition,
  isRefusedContent,
  isRetryable,
  isTimeout,
} from './database.ts';
export type { Drift, DriftLog } from './drift.ts';
export { type JobEvent, type Kind, type Status, eventId, isStatus, kindOf, parseEventId } from './event.ts';
export { createFailureLog, failureOf } from './failures.ts';
export { migrate } from './migrate.ts';
export { makePartitions } from './partitions.ts';
export {
  type Delivery,
  type DeliveryRecord,
  RELEASE,
  type RecordedDelivery,
  jobKey,
  recordDeliveries,
  releaseColumns,
} from './record.ts';
export { type RefusalCount, addRefusals } from './refusals.ts';
export { MINUTES_KEPT_HOURS, NO_TIME_BUCKET, bucketMs } from './rollups.ts';
export type { Database, DeliveryOutcome, OutboxState, PublicationResult, ReplayState } from './tables.ts';
export { TIME_FORMAT, timeText } from './time-text.ts';
export { type AuthenticBody, type Understanding, understand } from './understand.ts';
