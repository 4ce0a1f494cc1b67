// The tables as Kysely sees them; migrations/ is their source. bigint columns arrive as text, since a
// JavaScript number cannot hold them all, and stay text: they are compared by the database alone.

import type { ColumnType, Generated, GeneratedAlways } from 'kysely';

type Bigint = ColumnType<string, string, string>;
type Timestamp = ColumnType<Date, Date | string, Date | string>;

export type DeliveryOutcome =
  | 'accepted'
  | 'duplicate'
  | 'conflict'
  | 'quarantined'
  | 'malformed'
  | 'unauthorized'
  | 'refused';

export type PublicationResult = 'confirmed' | 'returned' | 'nacked' | 'failed';
export type OutboxState = 'pending' | 'returned' | 'parked';

export interface Database {
  jobs: {
    source: string;
    job_id: string;
    first_seen_at: Timestamp;
    last_seen_at: Timestamp;
    highest_progress: number | null;
    completed_at: Timestamp | null;
    failed_at: Timestamp | null;
    terminal_at: GeneratedAlways<Date | null>;
    last_status: GeneratedAlways<string>;
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
    body_sha256: Buffer | null;
    body: Buffer | null;
  };
  publications: {
    published_at: Timestamp;
    event_sequence: Bigint;
    attempt: number;
    result: PublicationResult;
    detail: string | null;
    duration_ms: number;
    relay_id: string;
  };
  refusals: {
    minute: Timestamp;
    source: string;
    unauthorized: Generated<string>;
    refused: Generated<string>;
  };
  outbox: {
    sequence: Bigint;
    source: string;
    job_id: string;
    status: string;
    progress_percentage: number | null;
    late: boolean;
    occurred_at: string | null;
    recorded_at: Timestamp;
    data: string;
    state: Generated<OutboxState>;
    attempts: Generated<number>;
    due_at: Generated<Date>;
    last_error: string | null;
  };
  relay_lease: {
    name: string;
    holder: string;
    epoch: Bigint;
    expires_at: Timestamp;
  };
}
