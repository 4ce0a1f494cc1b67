// How an event was delivered: the second argument of a handler, read from the event's message as the subscriber reads it.

import { CLOUD_EVENT_TYPE, type ConversionEvent, parseEvent } from '../event/index.ts';
import type { MessageDelivery } from '../subscriber/index.ts';
import { type Message, read } from '../subscriber/incoming.ts';
import { messageOf, type MessageOptions } from './message-of.ts';
import { sampleEvent } from './sample-event.ts';

export type SampleDeliveryOptions<Tx = undefined> = {
  /** The event that is delivered (`sampleEvent({ kind: 'completed' })`). */
  readonly event?: ConversionEvent | undefined;
} & Partial<MessageDelivery<Tx>>;

/**
 * The delivery of an event at the first attempt, unless told otherwise: `handler(event, sampleDelivery({ event, tx }))`.
 * @param options `tx` is what your dedup store lends: a client, or what stands in for one
 */
export function sampleDelivery<Tx = undefined>(options: SampleDeliveryOptions<Tx> = {}): MessageDelivery<Tx> {
  const { event = sampleEvent({ kind: 'completed' }), ...own } = options;
  const { delivery } = read(toMessage(event), 'job');
  const tx = undefined as Tx; // without a store nothing is lent
  return { ...delivery, attempt: 1, signal: new AbortController().signal, tx, ...own };
}

/** What cannot be an event has the message that others might have published. */
const FOREIGN = { routingKey: 'job.unknown.default', properties: { contentType: CLOUD_EVENT_TYPE } };

/** The message of an event, or of anything else. */
export function toMessage(
  body: string | Uint8Array | object,
  { redelivered = false, replay }: { redelivered?: boolean | undefined } & MessageOptions = {},
): Message {
  const found = parseEvent(body);
  const { routingKey, properties } =
    found.outcome === 'event' ? messageOf(found.event, replay && { replay }) : FOREIGN;
  return { content: bytesOf(body), fields: { routingKey, redelivered, deliveryTag: 1 }, properties };
}

function bytesOf(body: string | Uint8Array | object): Buffer {
  if (body instanceof Uint8Array) return Buffer.from(body);
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}
