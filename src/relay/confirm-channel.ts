// One confirm channel of one connection, and the messages in flight on it. When the channel closes, all of them fail. It is never
// used again: the publisher opens a new one on the next connection.

import type { ChannelModel, MessageProperties } from 'amqplib';
import { brokerSocket } from './broker-socket.ts';
import { createSentMessages, type SentMessages } from './sent-messages.ts';
import type { OutgoingMessage, Publication } from './publication.ts';
import { declareTopology, type Topology } from './topology.ts';

export type OpenChannel = {
  readonly isOpen: () => boolean;
  readonly inFlight: SentMessages;
  /** `settled` gets the result, once, and must not throw. Throws if amqplib does; then the channel must not be used again. */
  readonly send: (message: OutgoingMessage, settled: (publication: Publication) => void) => void;
  /** Closes the connection, too, so that the recovery opens a new one. A broker that does not answer delays it by 2 s. */
  readonly close: () => void;
};

/** An error that amqplib emits. `code` is AMQP's reply code if the broker sent one. */
export type BrokerError = Error & { readonly code?: unknown };

/** A message that was returned (basic.return). amqplib's own type leaves these fields out. */
type ReturnedMessage = {
  readonly fields: { readonly replyCode: number; readonly replyText: string };
  readonly properties: MessageProperties;
};

/**
 * A broker that is silent does not answer a close, and neither does one whose channel waits for a queue without a leader: for
 * up to 65 s, RabbitMQ's net_ticktime and 5 s. Until the connection is closed, the recovery does not open another one.
 */
const CLOSE_TIMEOUT_MS = 2_000;

/** Its routing keys are names of queues. */
const DEFAULT_EXCHANGE = '';

/**
 * Opens the channel and declares the topology. Rejects if the broker refuses either.
 * @param onClosed called before the messages in flight fail, with the error of the broker or the connection if there was one
 */
export async function openConfirmChannel(
  model: ChannelModel,
  options: { topology: Topology; now: () => number; onClosed: (reason: BrokerError | undefined) => void },
): Promise<OpenChannel> {
  const { topology, now, onClosed } = options;
  const inFlight = createSentMessages(now);
  const socket = brokerSocket(model);
  let isOpen = true;
  let reason: BrokerError | undefined;
  const keepReason = (error: BrokerError) => {
    reason = error;
  };
  // This comes first: the model has no other listener yet, and an error without one would end the process.
  model.on('error', keepReason);
  const channel = await model.createConfirmChannel();
  channel.on('error', keepReason);
  channel.on('return', ({ fields, properties }: ReturnedMessage) =>
    inFlight.markReturned(String(properties.messageId), `${fields.replyCode} ${fields.replyText}`),
  );
  channel.on('close', () => {
    isOpen = false;
    onClosed(reason);
    inFlight.failAll(reason?.message ?? 'channel closed', reason?.code);
  });
  await declareTopology(channel, topology);

  return {
    isOpen: () => isOpen,
    inFlight,

    send: (message, settled) => {
      const sent = inFlight.add(message, settled);
      channel.publish(
        typeof message.queue === 'string' ? DEFAULT_EXCHANGE : topology.exchange.name,
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
      socket.cork();
    },

    close: () => {
      model.close().catch(() => {});
      setTimeout(socket.destroy, CLOSE_TIMEOUT_MS, 'the broker did not close the connection').unref();
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
