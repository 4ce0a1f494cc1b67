// What subscribers get of an event: one CloudEvents 1.0 document in structured mode (`application/cloudevents+json`), and its
// routing key. Pure. One event always gives the same bytes, in a replay's copies and in what operators are shown, too.

import {
  dataSchema,
  eventId,
  eventSource,
  eventType,
  type Kind,
  kindOf,
  SEQUENCE_DIGITS,
  type Status,
} from '../event/index.ts';

/** The parts of an event in its outbox entry. */
export type PublishedEvent = {
  /** Decimal digits of a 64-bit number. */
  readonly sequence: string;
  readonly source: string;
  readonly jobId: string;
  readonly status: Status;
  readonly progress: number | null;
  readonly late: boolean;
  readonly occurredAt: string | null;
  readonly recordedAt: Date;
  /** The normalized fields as JSON text. */
  readonly data: string;
};

export type CloudEvent = {
  readonly id: string;
  readonly type: string;
  readonly kind: Kind;
  readonly json: string;
};

export function toCloudEvent(event: PublishedEvent): CloudEvent {
  const id = eventId(event.source, event);
  const kind = kindOf(event.status);
  const recordedAt = event.recordedAt.toISOString();
  const envelope = {
    specversion: '1.0',
    id,
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
  // `data` is inserted as text: parsing it would cost time, and digits of large numbers.
  return {
    id,
    type: envelope.type,
    kind,
    json: `${JSON.stringify(envelope).slice(0, -1)},"data":${event.data}}`,
  };
}
