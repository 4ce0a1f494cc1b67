// The attributes of an event's CloudEvent, all but `data`. The relay publishes them, and the samples of `tallyhook/testing` have
// the same, since both are made here. Pure.

import { dataSchema, eventSource, eventType, SEQUENCE_DIGITS } from './envelope.ts';
import { eventId, kindOf, type Status } from './id.ts';

/** What the attributes say. */
export type RecordedEvent = {
  /** Decimal digits of a 64-bit number. */
  readonly sequence: string;
  readonly source: string;
  readonly jobId: string;
  readonly status: Status;
  readonly progress: number | null;
  readonly late: boolean;
  /** RFC 3339 in UTC; null if the notification does not say when it happened. */
  readonly occurredAt: string | null;
  readonly recordedAt: Date;
};

/** In the order in which they are published. */
export function attributesOf(event: RecordedEvent) {
  const kind = kindOf(event.status);
  const recordedAt = event.recordedAt.toISOString();
  return {
    specversion: '1.0',
    id: eventId(event.source, event),
    type: eventType(kind),
    source: eventSource(event.source),
    subject: event.jobId,
    time: event.occurredAt ?? recordedAt,
    recordedtime: recordedAt,
    sequence: event.sequence.padStart(SEQUENCE_DIGITS, '0'),
    ...(event.late ? { late: true } : {}),
    datacontenttype: 'application/json',
    dataschema: dataSchema(kind),
  };
}
