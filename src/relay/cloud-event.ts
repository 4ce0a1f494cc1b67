// Makes the message that subscribers get: the CloudEvent of an event with AMQP's own properties. Pure. A replay's copies have
// the same body: only the message's headers mark a copy.

import type { OutgoingMessage } from './publication.ts';
import { CLOUD_EVENT_TYPE, routingKey } from '../event/index.ts';
import { type PublishedEvent, toCloudEvent } from '../ledger/index.ts';

export type EntryEvent = PublishedEvent & {
  /** Set only on a replay's copy. */
  readonly replay?: ReplayMark;
};

/** Which replay publishes this copy, who asked for it, and the queue it is for instead of the exchange. */
export type ReplayMark = { readonly id: string; readonly by: string; readonly queue: string | null };

export function toMessage(event: EntryEvent, routingPrefix: string): OutgoingMessage {
  const { id, type, kind, json } = toCloudEvent(event);
  return {
    messageId: id,
    routingKey: routingKey(routingPrefix, kind, event.source),
    contentType: CLOUD_EVENT_TYPE,
    type,
    timestamp: event.recordedAt,
    body: Buffer.from(json),
    ...(event.replay === undefined ? {} : markOf(event.replay)),
  };
}

function markOf({ id, by, queue }: ReplayMark): Pick<OutgoingMessage, 'queue' | 'headers'> {
  return { queue, headers: { replay: id, replayed_by: by } };
}
