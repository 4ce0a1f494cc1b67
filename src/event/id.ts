// The kinds of event, and the id of each: its dedup key in readable form.

/** The kinds of event, as in `conversion.job.completed` and in routing keys. */
export const KINDS = ['completed', 'failed', 'progress'] as const;
/** `completed`, `failed` or `progress`. */
export type Kind = (typeof KINDS)[number];
export type Status = 'processing' | 'completed' | 'failed';

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
