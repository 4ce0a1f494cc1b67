// Makes entries of what the tables have. The content of an event is that of its delivery's body; a row of outbox_held can have
// its own.

import { type Status } from '../event/index.ts';
import { type AuthenticBody, understand } from '../ledger/index.ts';
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

/**
 * The delivery `d` of `events e`. It was received when its event was recorded, except for a released one (index
 * deliveries_released).
 */
export const JOIN_DELIVERY =
  'left join deliveries d on d.id = e.delivery_id and d.received_at = e.recorded_at';
export const BODY = `coalesce(d.body, (
         select r.body from deliveries r
         where d.id is null and r.released_at is not null and r.event_sequence = e.sequence and r.id = e.delivery_id))`;

/** The event as it is published: the same bytes as when it was accepted. */
export function toEntry({ body, ...event }: EventRow, rest: { attempts: number }): Entry {
  const entry = { ...event, ...rest, position: event.sequence };
  if (body === null) return { ...entry, ...NOTHING, unreadable: 'its body is no longer kept' };
  const understood = understand(body);
  if (understood.outcome !== 'event') {
    return { ...entry, ...NOTHING, unreadable: `it is not understood any more: ${understood.reason}` };
  }
  const { occurredAt, data } = understood.event;
  return { ...entry, occurredAt, data };
}

const NOTHING = { occurredAt: null, data: '' };
