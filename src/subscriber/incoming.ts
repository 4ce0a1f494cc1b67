// A message as it came: what it holds, the lane it belongs to, and how it is settled at the broker.

import type { Channel, ConsumeMessage } from 'amqplib';
import { type ParsedEvent, parseEvent } from '../event/index.ts';
import type { Link } from './connection.ts';
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
  /** To the dead-letter queue. @returns false if the connection is gone. */
  readonly deadLetter: () => boolean;
};

export function toIncoming(
  message: ConsumeMessage,
  { channel, link, order }: { channel: Channel; link: Link; order: 'job' | 'queue' | 'none' },
): Incoming {
  const { content, fields, properties } = message;
  const found = parseEvent(content);
  const messageId = properties.messageId as string | undefined;
  const settled = (settle: () => void): boolean => {
    if (!link.isOpen()) return false;
    try {
      settle();
      return true;
    } catch {
      return false; // the channel is closed
    }
  };
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
      body: content,
    },
    isSettleable: link.isOpen,
    acknowledge: () => settled(() => channel.ack(message)),
    deadLetter: () => settled(() => channel.nack(message, false, false)),
  };
}

/** Two copies of an event are always in the same lane: they never run at the same time. */
function laneOf(found: ParsedEvent, order: 'job' | 'queue' | 'none', id: string): string {
  if (order === 'queue') return '';
  if (found.outcome !== 'event') return id;
  return order === 'job' ? `${found.event.source} ${found.event.subject}` : found.event.id;
}

function replayOf(headers: Record<string, unknown> = {}): MessageDelivery['replay'] {
  const { replay, replayed_by: by } = headers;
  return typeof replay === 'string' ? { id: replay, by: typeof by === 'string' ? by : '' } : undefined;
}
