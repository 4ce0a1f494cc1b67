// What subscribers get of an event: one CloudEvents 1.0 document in structured mode (`application/cloudevents+json`), and its
// routing key. Pure. One event always gives the same bytes, in a replay's copies and in what operators are shown, too.

import { eventId, type Kind, kindOf, type Status } from './event.ts';

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

export const CLOUD_EVENT_TYPE = 'application/cloudevents+json';

/** Raised only when the form of `data` changes; the new version is then published beside the old one. */
export const SCHEMA_VERSION = 1;

/** Digits of 2^63-1. Padded to these, sequences sort as text in the order of numbers, as CloudEvents' extension requires. */
const SEQUENCE_DIGITS = 19;

/** The `$id` of the JSON Schema of `data`, in docs/schemas/. */
export function dataSchema(kind: Kind): string {
  return `urn:tallyhook:schema:conversion.job.${kind}:${SCHEMA_VERSION}`;
}

/** `job.<kind>.<source>`: a subscriber binds `job.completed.*`, `job.*.team-a` or `job.#`. */
export function routingKey(prefix: string, kind: string, source: string): string {
  return `${prefix}.${kind}.${source}`;
}

export function toCloudEvent(event: PublishedEvent): CloudEvent {
  const id = eventId(event.source, event);
  const kind = kindOf(event.status);
  const recordedAt = event.recordedAt.toISOString();
  const envelope = {
    specversion: '1.0',
    id,
    type: `conversion.job.${kind}`,
    source: `/sources/${event.source}`,
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
