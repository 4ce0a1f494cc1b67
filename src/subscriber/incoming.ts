// A message as it came: what it holds, the lane it belongs to, and how it is settled at the broker.

import type { Channel, ConsumeMessage } from 'amqplib';
import { type ParsedEvent, parseEvent } from '../event/index.ts';
import type { Link } from './connection.ts';
import { type Failure, failureIn } from './dead-letter.ts';
import type { MessageDelivery } from './delivery.ts';
import type { Named } from './notices.ts';

export type Incoming = {
  readonly found: ParsedEvent;
  readonly name: Named;
  readonly lane: string;
  readonly arrivedMs: number;
  /** What does not change between attempts. */
  readonly delivery: Omit<MessageDelivery, 'attempt' | 'signal' | 'tx'>;
  /** False when its connection is gone: the broker delivers a copy. */
  readonly isSettleable: () => boolean;
  /** @returns false if the connection is gone. */
  readonly acknowledge: () => boolean;
  /** To the dead-letter queue, if there is one. @returns false if the connection is gone. */
  readonly deadLetter: (failure: Failure) => Promise<boolean>;
};

/** What is read of a message of amqplib. */
export type Message = {
  readonly content: Buffer;
  readonly fields: {
    readonly routingKey: string;
    readonly redelivered: boolean;
    readonly deliveryTag: number;
  };
  readonly properties: {
    readonly messageId?: unknown;
    readonly contentType?: unknown;
    readonly headers?: Record<string, unknown> | undefined;
  };
};

/** A message as it was read, whoever settles it. */
export type Read = Omit<Incoming, 'isSettleable' | 'acknowledge' | 'deadLetter'>;

type Order = 'job' | 'queue' | 'none';

export function toIncoming(
  message: ConsumeMessage,
  options: {
    readonly channel: Channel;
    readonly link: Link;
    readonly order: Order;
    /** Where it is published if it is dead-lettered. @returns false if it did not surely arrive. Undefined: the broker does it */
    readonly publishDead: ((message: ConsumeMessage, failure: Failure) => Promise<boolean>) | undefined;
  },
): Incoming {
  const { channel, link, publishDead } = options;
  const settled = (settle: () => void): boolean => {
    if (!link.isOpen()) return false;
    try {
      settle();
      return true;
    } catch {
      return false; // the channel is closed
    }
  };
  const acknowledge = () => settled(() => channel.ack(message));
  return {
    ...read(message, options.order),
    isSettleable: link.isOpen,
    acknowledge,
    deadLetter: async (failure) =>
      link.isOpen() && (await publishDead?.(message, failure))
        ? acknowledge()
        : settled(() => channel.nack(message, false, false)),
  };
}

/** What there is to know of it, without its channel. */
export function read({ content, fields, properties }: Message, order: Order): Read {
  const found = parseEvent(content);
  const messageId = properties.messageId as string | undefined;
  return {
    found,
    name: {
      ...(found.outcome === 'event'
        ? { id: found.event.id, kind: found.kind, subject: found.event.subject }
        : { id: messageId, kind: found.outcome, subject: undefined }),
      redelivered: fields.redelivered,
    },
    lane: laneOf(found, order, messageId ?? `delivery ${fields.deliveryTag}`),
    arrivedMs: performance.now(),
    delivery: {
      messageId,
      routingKey: fields.routingKey,
      contentType: properties.contentType as string | undefined,
      redelivered: fields.redelivered,
      replay: replayOf(properties.headers),
      failure: failureIn(properties.headers),
      body: content,
    },
  };
}

/** Two copies of an event are always in the same lane: they never run at the same time. */
function laneOf(found: ParsedEvent, order: Order, id: string): string {
  if (order === 'queue') return '';
  if (found.outcome !== 'event') return id;
  return order === 'job' ? `${found.event.source} ${found.event.subject}` : found.event.id;
}

function replayOf(headers: Record<string, unknown> = {}): MessageDelivery['replay'] {
  const { replay, replayed_by: by } = headers;
  return typeof replay === 'string' ? { id: replay, by: typeof by === 'string' ? by : '' } : undefined;
}
