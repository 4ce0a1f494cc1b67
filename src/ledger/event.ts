// What an event is: the fact that a delivery told us, its kinds and its key. Shared by the intake, the relay and the operators'
// tools.

export type Status = 'processing' | 'completed' | 'failed';
export type Kind = 'progress' | 'completed' | 'failed';

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

const kinds: Readonly<Record<Status, Kind>> = {
  processing: 'progress',
  completed: 'completed',
  failed: 'failed',
};
const EVENT_ID = /^([^:]+):(.+):(?:(completed|failed)|(processing):(\d{1,3}))$/;
export const isStatus = (status: string): status is Status => Object.hasOwn(kinds, status);

export function kindOf(status: Status): Kind {
  return kinds[status];
}

/**
 * The dedup key in readable form, the event's id, which never changes: `default:job_7f3a:completed`,
 * `default:job_7f3a:processing:45`. Unambiguous, although a job id may contain colons: read it from the right.
 */
export function eventId(
  source: string,
  event: { jobId: string; status: Status; progress: number | null },
): string {
  const suffix = event.progress === null ? '' : `:${event.progress}`;
  return `${source}:${event.jobId}:${event.status}${suffix}`;
}

/** The key that `eventId` made this text from; undefined if the text has another form. */
export function parseEventId(
  id: string,
): { source: string; jobId: string; status: Status; progress: number | null } | undefined {
  const [, source, jobId, terminal, progressing, percent] = EVENT_ID.exec(id) ?? [];
  const status = terminal ?? progressing;
  if (source === undefined || jobId === undefined || status === undefined || !isStatus(status))
    return undefined;
  return { source, jobId, status, progress: percent === undefined ? null : Number(percent) };
}
