// The tables, and what more than one room writes to them or needs to know of them. Does not know these rooms.
// The door of this room: other rooms import from this file alone.

// What a delivery told us
export { BODY_SHA256 } from './body-hash.ts';
export { type PublishedEvent, toCloudEvent } from './cloud-event.ts';
export { contentOf } from './content.ts';
export type { JobEvent } from './event.ts';
export { type AuthenticBody, type Understanding, understand } from './understand.ts';
export {
  canonicalJson,
  decodeUtf8,
  inspectStructure,
  parseExactly,
  parseLoosely,
} from './exact-json.ts';

// Recording of deliveries
export { createFailureLog, failureOf, isAway } from './failures.ts';
export {
  type Delivery,
  type DeliveryRecord,
  RELEASE_QUARANTINED,
  type RecordedDelivery,
  type TalliedDelivery,
  type WriteMark,
  jobKey,
  recordDeliveries,
  releaseColumns,
} from './record.ts';

// Counts beside deliveries
export { type AddressCounts, busiest, countAddress } from './address-counts.ts';
export type { Drift, DriftLog } from './drift.ts';
export { type RefusalCount, addRefusals } from './refusals.ts';
export { MINUTES_KEPT_HOURS, NO_TIME_BUCKET, bucketMs } from './rollups.ts';

// Access to Postgres
export { textArray } from './arrays.ts';
export {
  type DatabaseConnection,
  type DatabaseOptions,
  type Statement,
  connectDatabase,
  readSnapshot,
} from './database.ts';
export {
  type Fault,
  faultOf,
  isLockTimeout,
  isMissingPartition,
  isRetryable,
  isRolledBack,
  isTimeout,
} from './sql-errors.ts';
export { createSessions, type Sessions } from './sessions.ts';
export { JOIN_DELIVERY, JOIN_JOB, joinEvent, joinHeld } from './by-key.ts';
export { batchedEvents, batches, hasEvent, KEEP_REST } from './batched-events.ts';
export { keepDays } from './drops.ts';
export { holdJobs, RELEASE_JOBS } from './hold.ts';
export { tellLeader } from './outbox-version.ts';
export { OUTBOX_COUNT_MAX, type OutboxDepth, readOutboxDepth } from './outbox-depth.ts';
export type {
  Database,
  DeliveryOutcome,
  OutboxState,
  PublicationResult,
  ReplayState,
  Unanswered,
} from './tables.ts';
export { TIME_FORMAT, timeText } from './time-text.ts';

// Start and upkeep
export { type Counts, composeCounts, prepareLedger } from './compose.ts';
export { composeHeartbeat, LATE_AFTER_S } from './heartbeat.ts';
export { createIdentity, type Identity } from './identity.ts';
export { createLossWatch, type Loss, type LossWatch } from './loss-watch.ts';
export { checkSchema, migrate } from './migrate.ts';
export { makePartitions } from './partitions.ts';
export { saveContent } from './save-content.ts';
export { createUpkeep } from './upkeep.ts';
