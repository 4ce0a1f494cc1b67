// What a delivery told us, as the ledger records it. Shared by the intake, the relay and the operators' tools.

import type { Status } from '../../event/index.ts';

/** The fact that a delivery told us. Its dedup key is (source, jobId, status, progress). */
export type JobEvent = {
  readonly jobId: string;
  readonly status: Status;
  /** The percentage, for `processing` only. It is part of the key there, or all progress except the first would be dropped. */
  readonly progress: number | null;
  /** When it happened, RFC 3339 UTC with the digits that were sent; null for progress, which has no such field. */
  readonly occurredAt: string | null;
  /** The error code, for `failed` only: as it came if it is short and printable, or null. Operators search for it. */
  readonly errorCode: string | null;
  /** The normalized fields as JSON text: known ones in the schema's form, unknown ones exactly as they came. */
  readonly data: string;
  /** SHA-256 of the canonical JSON of the whole body: equal for two bodies with the same content. */
  readonly contentHash: Buffer;
};
