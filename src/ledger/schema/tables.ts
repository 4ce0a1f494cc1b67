// The tables' types for Kysely; migrations/ define the tables. A bigint arrives as text, since a JavaScript number cannot
// represent all of them, and stays text: only the database compares them.

import type { ColumnType, Generated, GeneratedAlways } from 'kysely';
import type { DeliveryOutcome, PublicationResult } from '../../base/closed-sets.ts';
import type { Severity } from '../../base/conditions.ts';

export type { DeliveryOutcome, PublicationResult };

type Bigint = ColumnType<string, string, string>;
type Timestamp = ColumnType<Date, Date | string, Date | string>;

/** Why the sender of a recorded delivery did not get its answer: it had left, or it got 503 since the commit took too long. */
export type Unanswered = 'left' | 'unavailable';

export type OutboxState = 'pending' | 'returned' | 'parked';
/** What rollups measure: the time until an answer to a delivery, or from an event's acceptance to its confirm. */
export type Measure = 'answer' | 'lag';
export type ReplayState = 'running' | 'paused' | 'cancelled' | 'finished';

export interface Database {
  jobs: {
    source: string;
    job_id: string;
    first_seen_at: Timestamp;
    last_seen_at: Timestamp;
    highest_progress: number | null;
    completed_at: Timestamp | null;
    failed_at: Timestamp | null;
    last_status: Generated<string>;
    last_writer: Generated<string | null>;
    writer_changed: Generated<boolean>;
    is_held: Generated<boolean>;
    hold_version: Generated<number>;
  };
  events: {
    sequence: GeneratedAlways<string>;
    source: string;
    job_id: string;
    status: string;
    progress_percentage: number | null;
    late: boolean;
    occurred_at: Timestamp | null;
    recorded_at: Timestamp;
    delivery_id: string;
    content_hash: Buffer;
    repeats: number;
    error_code: string | null;
  };
  deliveries: {
    id: string;
    received_at: Timestamp;
    source: string;
    outcome: DeliveryOutcome;
    http_status: number;
    reason: string | null;
    job_id: string | null;
    status: string | null;
    progress_percentage: number | null;
    event_sequence: Bigint | null;
    path: string;
    remote_address: string | null;
    headers: string;
    secret_fingerprint: string | null;
    body_bytes: number | null;
    /** Of a body that is not kept. `BODY_SHA256` reads that of any. */
    body_sha256: Buffer | null;
    body: Buffer | null;
    error_code: string | null;
    released_at: Timestamp | null;
    peer_address: string | null;
    signed_by: string | null;
    discarded_at: Timestamp | null;
    discarded_by: string | null;
    discard_note: string | null;
    unanswered: Unanswered | null;
  };
  publications: {
    published_at: Timestamp;
    event_sequence: Bigint;
    attempt: number;
    result: PublicationResult;
    detail: string | null;
    duration_ms: number;
    relay_id: string;
    relay_attempt: string;
    id: Generated<string>;
    source: string | null;
    replay_id: string | null;
    queue: string | null;
  };
  publication_batches: {
    published_at: Timestamp;
    id: Generated<string>;
    relay_id: string;
    source: string;
    first: Bigint;
    sequences: string[];
    durations_ms: number[];
  };
  refusals: {
    minute: Timestamp;
    source: string;
    unauthorized: Generated<string>;
    refused: Generated<string>;
  };
  refusal_addresses: {
    minute: Timestamp;
    source: string;
    address: string;
    count: Bigint;
  };
  outbox_batches: {
    first: Bigint;
    sequences: string[];
    bytes: number;
    writer: Bigint | null;
    number: number | null;
    recorded_at: Generated<Date>;
    xid: Generated<string>;
  };
  outbox_held: {
    sequence: Bigint;
    source: string;
    job_id: string;
    status: string;
    progress_percentage: number | null;
    late: boolean;
    occurred_at: string | null;
    recorded_at: Timestamp;
    data: string | null;
    state: Generated<OutboxState>;
    attempts: Generated<number>;
    due_at: Generated<Date>;
    last_error: string | null;
    body: Buffer | null;
  };
  outbox_version: {
    is_the_row: Generated<boolean>;
    version: Generated<string>;
  };
  replay_copies: {
    position: Bigint;
    replay_id: string;
    replay_of: Bigint;
    replayed_by: string;
    queue: string | null;
    source: string;
    job_id: string;
    status: string;
    progress_percentage: number | null;
    late: boolean;
    occurred_at: string | null;
    recorded_at: Timestamp;
    data: string;
    state: Generated<'pending' | 'returned'>;
    attempts: Generated<number>;
    due_at: Generated<Date>;
    last_error: string | null;
  };
  replicas: {
    id: string;
    version: string;
    host: string;
    started_at: Timestamp;
    seen_at: Timestamp;
    /** Of each sign: the seconds since it was last so, as of `seen_at`. */
    signs: ColumnType<Readonly<Record<string, number>>, string | undefined, string>;
  };
  relay_lease: {
    name: string;
    holder: string;
    epoch: Bigint;
    expires_at: Timestamp;
    since: Timestamp | null;
    lapsed_at: Timestamp | null;
    promoted_at: Timestamp | null;
    memory: ColumnType<unknown, string | null, string | null>;
  };
  incidents: {
    id: string;
    condition: string;
    subject: Generated<string>;
    severity: Severity;
    summary: string;
    began_at: Timestamp;
    ended_at: Timestamp | null;
    events_waited: Generated<string>;
    decided_by: Generated<string[]>;
  };
  incident_messages: {
    id: string;
    incident_id: string;
    moment: 'begin' | 'end';
    channel: string;
    due_at: Timestamp;
    attempts: Generated<number>;
    sent_at: Timestamp | null;
    given_up_at: Timestamp | null;
    last_error: string | null;
  };
  replays: {
    id: string;
    created_at: Timestamp;
    created_by: string;
    note: string | null;
    sources: string[] | null;
    selection: string;
    up_to_sequence: Bigint;
    queue: string | null;
    rate_per_second: number;
    state: ReplayState;
    paused_because: string | null;
    matched: Bigint;
    matched_exactly: Generated<boolean>;
    cursor_sequence: Generated<string>;
    queued: Generated<string>;
    confirmed: Generated<string>;
    returned: Generated<string>;
    failed: Generated<string>;
    skipped: Generated<string>;
    updated_at: Timestamp;
    finished_at: Timestamp | null;
  };
  replay_skips: {
    replay_id: string;
    event_sequence: Bigint;
    reason: string;
    at: Generated<Date>;
  };
  tokens: {
    id: string;
    name: string;
    environment: 'live' | 'test';
    role: 'scraper' | 'viewer' | 'auditor' | 'operator' | 'admin';
    sources: string[] | null;
    value_hash: Buffer;
    created_at: Timestamp;
    created_by: string;
    expires_at: Timestamp | null;
    last_used_at: Timestamp | null;
    revoked_at: Timestamp | null;
  };
  sessions: {
    id: string;
    value_hash: Buffer;
    token_id: string;
    created_at: Generated<Timestamp>;
    last_used_at: Generated<Timestamp>;
    expires_at: Timestamp;
    ended_at: Timestamp | null;
    remote_address: string | null;
  };
  sign_in_codes: {
    value_hash: Buffer;
    token_id: string;
    expires_at: Timestamp;
  };
  operator_log: {
    id: GeneratedAlways<string>;
    at: Generated<Date>;
    token_id: string | null;
    actor: string;
    role: string;
    action: string;
    source: string | null;
    subject: string | null;
    detail: string | null;
    remote_address: string | null;
  };
  idempotency_keys: {
    token_id: string;
    key: string;
    request_hash: Buffer;
    http_status: number | null;
    answer: string | null;
    created_at: Timestamp;
  };
  rollups: {
    minute: Timestamp;
    measure: Measure;
    source: string;
    result: string;
    bucket: number;
    count: Bigint;
  };
  rollups_hourly: {
    hour: Timestamp;
    measure: Measure;
    source: string;
    result: string;
    bucket: number;
    count: Bigint;
  };
  waits: {
    minute: Timestamp;
    pending: number;
    returned: number;
    parked: number;
    quarantined: number;
    oldest_pending_s: number;
  };
  drift: {
    source: string;
    kind: 'field' | 'status';
    status: string;
    name: string;
    value_type: string;
    count: Bigint;
    first_seen_at: Timestamp;
    last_seen_at: Timestamp;
    sample_delivery_id: string;
  };
  secret_matches: {
    source: string;
    fingerprint: string;
    last_matched_at: Timestamp;
  };
  schema_requirements: {
    migration: string;
    oldest_program: string;
  };
  /** Read and written by its functions alone (sessions/identity.ts). */
  database_identity: {
    is_the_row: Generated<boolean>;
    system_identifier: string | null;
    timeline: string | null;
    database: number;
    events: number;
    started_at: Timestamp;
  };
}
