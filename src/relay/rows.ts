// Makes entries of what the tables have. The content of an event is that of its delivery's body; a row of outbox_held can have
// its own.

import { type Status } from '../event/index.ts';
import { type AuthenticBody, contentOf } from '../ledger/index.ts';
import type { Entry } from './entry.ts';

export type EventRow = {
  readonly sequence: string;
  readonly source: string;
  readonly jobId: string;
  readonly status: Status;
  readonly progress: number | null;
  readonly late: boolean;
  readonly recordedAt: Date;
  readonly body: AuthenticBody | null;
};

/** Of `events e`. */
export const EVENT_COLUMNS = `e.sequence, e.source, e.job_id as "jobId", e.status, e.progress_percentage as progress, e.late,
       e.recorded_at as "recordedAt"`;

/** Of the delivery `d` that JOIN_DELIVERY finds, or of a released one. */
export const BODY = `coalesce(d.body, (
         select r.body from deliveries r
         where d.id is null and r.released_at is not null and r.event_sequence = e.sequence and r.id = e.delivery_id))`;

/** The event as it is published. */
export function toEntry({ body, ...event }: EventRow, rest: { attempts: number }): Entry {
  const entry = { ...event, ...rest, position: event.sequence };
  const content = contentOf(body);
  if (content.unreadable === undefined) return { ...entry, ...content };
  return { ...entry, occurredAt: null, data: '', unreadable: content.unreadable };
}
