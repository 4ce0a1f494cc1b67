// The message of an event with AMQP's own properties, as the relay publishes it, for a test that publishes events to a broker.

import { CLOUD_EVENT_TYPE, type ConversionEvent, routingKey } from '../event/index.ts';

export type SampleMessage = {
  /** `job.completed.default`. The exchange is yours to choose. */
  readonly routingKey: string;
  /** The event as JSON. */
  readonly content: Buffer;
  /** By the names that amqplib has for them: give them to `channel.publish` as its options. */
  readonly properties: {
    readonly messageId: string;
    readonly contentType: string;
    readonly type: string;
    /** Seconds since the epoch: when the event was recorded. */
    readonly timestamp: number;
    readonly appId: string;
    /** The broker writes it to disk: AMQP's delivery mode 2. */
    readonly persistent: true;
    /** Only copies that an operator's replay publishes have them. */
    readonly headers?: { readonly replay: string; readonly replayed_by: string };
  };
};

export type MessageOptions = {
  /** The first word of routing keys, AMQP_ROUTING_PREFIX of the service (`job`). */
  readonly prefix?: string;
  /** Makes it a copy that a replay publishes: the replay's id, and the operator who asked for it. */
  readonly replay?: { readonly id: string; readonly by: string };
};

/** The message in which the relay publishes this event. A replay's copy differs only in its headers. */
export function messageOf(
  event: ConversionEvent,
  { prefix = 'job', replay }: MessageOptions = {},
): SampleMessage {
  const kind = event.type.slice(event.type.lastIndexOf('.') + 1);
  const source = event.source.slice(event.source.lastIndexOf('/') + 1);
  return {
    routingKey: routingKey(prefix, kind, source),
    content: Buffer.from(JSON.stringify(event)),
    properties: {
      messageId: event.id,
      contentType: CLOUD_EVENT_TYPE,
      type: event.type,
      timestamp: Math.floor(Date.parse(event.recordedtime) / 1_000),
      appId: 'tallyhook',
      persistent: true,
      ...(replay === undefined ? {} : { headers: { replay: replay.id, replayed_by: replay.by } }),
    },
  };
}
