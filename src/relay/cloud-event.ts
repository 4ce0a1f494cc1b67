// Makes the message that subscribers get: one CloudEvents 1.0 document in structured mode (`application/cloudevents+json`).
// Pure. One event always gives the same bytes, in a replay's copies too: only the message's headers mark a copy.

import type { OutgoingMessage } from './publisher.ts';
import { routingKey } from './topology.ts';
import { eventId, type Kind, kindOf, type Status } from '../ledger/index.ts';

/** The parts of an event in its outbox entry. */
export type EntryEvent = {
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
  /** Set only on a replay's copy. */
  readonly replay?: ReplayMark;
};

/** Which replay publishes this copy, who asked for it, and the queue it is for instead of the exchange. */
export type ReplayMark = { readonly id: string; readonly by: string; readonly queue: string | null };

export const CONTENT_TYPE = 'application/cloudevents+json';

/** Raised only when the form of `data` changes; the new version is then published beside the old one. */
export const SCHEMA_VERSION = 1;

/** Digits of 2^63-1. Padded to these, sequences sort as text in the order of numbers, as CloudEvents' extension requires. */
const SEQUENCE_DIGITS = 19;

/** The `$id` of the JSON Schema of `data`, in docs/schemas/. */
export function dataSchema(kind: Kind): string {
  return `urn:tallyhook:schema:conversion.job.${kind}:${SCHEMA_VERSION}`;
}

export function toMessage(event: EntryEvent, routingPrefix: string): OutgoingMessage {
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
  const json = `${JSON.stringify(envelope).slice(0, -1)},"data":${event.data}}`;
  return {
    messageId: id,
    routingKey: routingKey(routingPrefix, kind, event.source),
    contentType: CONTENT_TYPE,
    type: envelope.type,
    timestamp: event.recordedAt,
    body: Buffer.from(json),
    ...(event.replay === undefined ? {} : markOf(event.replay)),
  };
}

function markOf({ id, by, queue }: ReplayMark): Pick<OutgoingMessage, 'queue' | 'headers'> {
  return { queue, headers: { replay: id, replayed_by: by } };
}
