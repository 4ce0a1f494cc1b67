// The tables, and what more than one room writes to them or needs to know of them. Does not know these rooms.
// The door of this room: other rooms import from this file alone.

// What a delivery told us
export { BODY_SHA256 } from './understanding/body-hash.ts';
export { type PublishedEvent, toCloudEvent } from './understanding/cloud-event.ts';
export { contentOf } from './understanding/content.ts';
export type { JobEvent } from './understanding/event.ts';
export { type AuthenticBody, type Understanding, understand } from './understanding/understand.ts';
export {
  canonicalJson,
  decodeUtf8,
  inspectStructure,
  parseExactly,
  parseLoosely,
} from './understanding/exact-json.ts';

// Recording of deliveries
export { createFailureLog, failureOf, isAway } from './sessions/failures.ts';
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
} from './recording/record.ts';

// Counts beside deliveries
export { type AddressCounts, busiest, countAddress } from './counts/address-counts.ts';
export type { Drift, DriftLog } from './understanding/drift.ts';
export { type RefusalCount, addRefusals } from './counts/refusals.ts';
export { MINUTES_KEPT_HOURS, NO_TIME_BUCKET, bucketMs } from './counts/rollups.ts';

// Access to Postgres
export { textArray } from './recording/arrays.ts';
export {
  type DatabaseConnection,
  type DatabaseOptions,
  type Statement,
  connectDatabase,
  readSnapshot,
} from './sessions/database.ts';
export {
  type Fault,
  faultOf,
  isLockTimeout,
  isMissingPartition,
  isRetryable,
  isRolledBack,
  isTimeout,
} from './sessions/sql-errors.ts';
export { createSessions, type Sessions } from './sessions/sessions.ts';
export { JOIN_DELIVERY, JOIN_JOB, joinEvent, joinHeld } from './recording/by-key.ts';
export { batchedEvents, batches, hasEvent, KEEP_REST } from './recording/batched-events.ts';
export { keepDays } from './upkeep/drops.ts';
export { holdJobs, RELEASE_JOBS } from './recording/hold.ts';
export { tellLeader } from './recording/outbox-version.ts';
export { OUTBOX_COUNT_MAX, type OutboxDepth, readOutboxDepth } from './recording/outbox-depth.ts';
export { composeLooks } from './looks/compose.ts';
export { IN_QUARANTINE, LOOK_MAX, type Looks, type SourceLook, readLooks } from './looks/looks.ts';
export { type ExpiringSecret, overdueSecrets } from './looks/overdue.ts';
export { KEPT, type Part as SizedPart, readParts, TABLES } from './looks/sizes.ts';
export type {
  Database,
  DeliveryOutcome,
  OutboxState,
  PublicationResult,
  ReplayState,
  Unanswered,
} from './schema/tables.ts';
export { TIME_FORMAT, timeText } from './recording/time-text.ts';

// Start and upkeep
export { type Counts, composeCounts, prepareLedger } from './compose.ts';
export { composeHeartbeat, LATE_AFTER_S, type Signs } from './upkeep/heartbeat.ts';
export { createIdentity, type Identity } from './sessions/identity.ts';
export { createLease, type Lease, leaseTimeouts } from './upkeep/lease.ts';
export { createLossWatch, type Loss, type LossWatch } from './upkeep/loss-watch.ts';
export { checkSchema, migrate } from './schema/migrate.ts';
export { type Plan, type PlannedLock, planMigration } from './schema/plan.ts';
export { makePartitions } from './upkeep/partitions.ts';
export { saveContent } from './recording/save-content.ts';
export { createUpkeep } from './upkeep/upkeep.ts';
