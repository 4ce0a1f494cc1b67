// One confirm channel of one connection, and the messages in flight on it. When the channel closes, all of them fail. It is never
// used again.

import type { MessageProperties } from 'amqplib';
import type { Link } from './recovering-connection.ts';
import { createSentMessages, type SentMessages } from './sent-messages.ts';
import type { OutgoingMessage, Publication } from './publication.ts';

export type OpenChannel = {
  readonly isOpen: () => boolean;
  readonly inFlight: SentMessages;
  /** `settled` gets the result, once, and must not throw. Throws if amqplib does; then the channel must not be used again. */
  readonly send: (message: OutgoingMessage, settled: (publication: Publication) => void) => void;
  /** Does not wait for the broker, which may be busy with this channel for a minute. */
  readonly close: () => void;
};

/** An error that amqplib emits. `code` is AMQP's reply code if the broker sent one. */
export type BrokerError = Error & { readonly code?: unknown };

/** A message that was returned (basic.return). amqplib's own type leaves these fields out. */
type ReturnedMessage = {
  readonly fields: { readonly replyCode: number; readonly replyText: string };
  readonly properties: MessageProperties;
};

/** Its routing keys are names of queues. */
const DEFAULT_EXCHANGE = '';

/**
 * Rejects if the broker refuses it.
 * @param options.onClosed called before the messages in flight fail, with the error of the broker or the connection if there was one
 */
export async function openConfirmChannel(
  link: Link,
  options: { exchange: string; now: () => number; onClosed: (reason: BrokerError | undefined) => void },
): Promise<OpenChannel> {
  const { exchange, now, onClosed } = options;
  const inFlight = createSentMessages(now);
  let isOpen = true;
  let refused: BrokerError | undefined;
  const channel = await link.model.createConfirmChannel();
  channel.on('error', (error: BrokerError) => {
    refused = error;
  });
  channel.on('return', ({ fields, properties }: ReturnedMessage) =>
    inFlight.markReturned(String(properties.messageId), `${fields.replyCode} ${fields.replyText}`),
  );
  channel.on('close', () => {
    isOpen = false;
    const reason: BrokerError | undefined = refused ?? link.lostBecause();
    onClosed(reason);
    inFlight.failAll(reason?.message ?? 'channel closed', reason?.code);
  });

  return {
    isOpen: () => isOpen,
    inFlight,

    send: (message, settled) => {
      const sent = inFlight.add(message, settled);
      channel.publish(
        typeof message.queue === 'string' ? DEFAULT_EXCHANGE : exchange,
        message.queue ?? message.routingKey,
        message.body,
        propertiesOf(message),
        // It must not throw: amqplib would not call those of the other messages of the same confirm.
        (error: unknown) => {
          if (error === null) inFlight.confirm(sent);
          else if (isNack(error)) inFlight.nack(sent);
          // Otherwise the channel closed, and its listener fails all messages with the reason.
        },
      );
      link.socket.cork();
    },

    close: () => {
      channel.close().catch(() => {});
    },
  };
}

function isNack(error: unknown): boolean {
  return error instanceof Error && error.message === 'message nacked';
}

function propertiesOf(message: OutgoingMessage) {
  return {
    messageId: message.messageId,
    contentType: message.contentType,
    type: message.type,
    timestamp: Math.floor(message.timestamp.getTime() / 1_000), // AMQP counts seconds
    appId: 'tallyhook',
    persistent: true,
    mandatory: true,
    headers: message.headers,
  };
}
