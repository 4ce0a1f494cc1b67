// What subscribers get of an event: one CloudEvents 1.0 document in structured mode (`application/cloudevents+json`), and its
// routing key. Pure. One event always gives the same bytes, in a replay's copies and in what operators are shown, too.

import { attributesOf, type Kind, kindOf, type RecordedEvent } from '../../event/index.ts';

/** The parts of an event in its outbox entry. */
export type PublishedEvent = RecordedEvent & {
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
  const attributes = attributesOf(event);
  // `data` is inserted as text: parsing it would cost time, and digits of large numbers.
  return {
    id: attributes.id,
    type: attributes.type,
    kind: kindOf(event.status),
    json: `${JSON.stringify(attributes).slice(0, -1)},"data":${event.data}}`,
  };
}
