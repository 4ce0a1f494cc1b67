// Consumes the queue, over any number of connections: declares what is needed, passes on each message, and says what happens to
// the connection. At its end no acknowledgement is left behind.

import type { Channel, ConsumeMessage } from 'amqplib';
import { keepConnected, type Link } from './connection.ts';
import { type Failure, publishDeadLetter } from './dead-letter.ts';
import { flushAcknowledgements } from './flush.ts';
import { type Incoming, toIncoming } from './incoming.ts';
import type { Tell } from './notices.ts';
import { orAfter } from './or-after.ts';
import type { Settings } from './settings.ts';
import { deadName, declareTopology, findQueue, toSubscriberError } from './topology.ts';

/**
 * Whether the queue's events come to this consumer. Over AMQP RabbitMQ does not say so; it is told from what was seen.
 * - `active`: an event has come over this connection, or all consumers of the queue are active.
 * - `standby`: another consumer had the events when this one came, and none has come here since.
 * - `unknown`: not connected; or nobody had the events, and none has come yet; or the queue's owner decided on its form.
 */
export type Standing = 'active' | 'standby' | 'unknown';

export type Consumer = {
  /** As `Connection.started`. */
  readonly started: Promise<void>;
  readonly isConnected: () => boolean;
  readonly standing: () => Standing;
  /**
   * Returns what was not acknowledged to the queue, and disconnects. Never rejects.
   *
   * It closes the channel, and does not cancel the consumer first: with a single active consumer the broker would activate the
   * next one at a cancel, before this one's messages are back.
   */
  readonly close: () => Promise<void>;
};

/** A broker that does not answer must not hold up the end for long; a busy one needs time for many acknowledgements. */
const CLOSE_TIMEOUT_MS = 5_000;

export function createConsumer<Tx>(options: {
  readonly settings: Settings<Tx>;
  readonly tell: Tell;
  /** No further connection is set up. */
  readonly stopping: AbortSignal;
  readonly onIncoming: (incoming: Incoming) => void;
  /** Of messages that came over a connection that is lost, copies come over the next one. */
  readonly onLost: () => void;
}): Consumer {
  const { settings, tell, stopping } = options;
  const { topology } = settings;
  let current: Channel | undefined;
  let standing: Standing = 'unknown';
  let wasConnected = false;
  let isOurs = false;
  let isClosing = false;
  let isQueueLost = false; // stays until it is told, since a setup may fail after it made the queue anew

  async function setup(link: Link): Promise<void> {
    stopping.throwIfAborted();
    const { wasMissing, isOwnForm } = await declareTopology(link.model, topology, isOurs);
    isOurs ||= wasMissing;
    if (wasConnected) isQueueLost ||= wasMissing;
    const channel = await link.model.createChannel();
    channel.on('error', () => {}); // until it consumes, its operations reject with what has to be said
    channel.on('close', () => {
      // Later: if the connection closed with it, that says why.
      setImmediate(() => isClosing || link.fail(new Error('the broker closed the channel')));
    });
    await channel.prefetch(settings.prefetch);
    // Right before it consumes: of two that come at the same moment, the second sees the first.
    const otherConsumers = (await findQueue(link.model, topology.queue))?.consumers ?? 0;
    standing = 'unknown';
    await consume(link, channel, isOwnForm);
    channel.on('error', link.fail);
    current = channel;
    const { queue } = topology;
    tell({ type: 'connected', queue, again: wasConnected, queueWasGone: isQueueLost, otherConsumers });
    wasConnected = true;
    isQueueLost = false;
    if (!topology.singleActiveConsumer || topology.form === 'temporary') becomeActive();
    else if (isOwnForm && otherConsumers > 0) waitFor(otherConsumers);
  }

  function waitFor(otherConsumers: number): void {
    if (standing === 'active') return;
    standing = 'standby';
    tell({ type: 'standby', queue: topology.queue, otherConsumers });
  }

  function becomeActive(): void {
    if (standing === 'standby') tell({ type: 'active', queue: topology.queue });
    standing = 'active';
  }

  async function consume(link: Link, channel: Channel, isOwnForm: boolean): Promise<void> {
    const { queue } = topology;
    const { order } = settings;
    const publishDead = isOwnForm
      ? (message: ConsumeMessage, failure: Failure) =>
          publishDeadLetter(link.model, deadName(queue), { message, queue, failure })
      : undefined;
    try {
      await channel.consume(queue, (message) => {
        if (message !== null) {
          becomeActive();
          options.onIncoming(toIncoming(message, { channel, link, order, publishDead }));
        } else if (!isClosing) link.fail(new Error(`queue '${topology.queue}' was deleted`));
      });
    } catch (error) {
      throw toSubscriberError(error, topology);
    }
  }

  const connection = keepConnected({
    url: settings.url,
    certificates: settings.certificates,
    name: `tallyhook subscriber ${topology.queue}`,
    setup,
    onLost: (error) => {
      current = undefined;
      options.onLost();
      tell({ type: 'lost', error });
    },
    onFailed: (error, retryInMs) => {
      if (!stopping.aborted) tell({ type: 'unreachable', error, retryInMs });
    },
  });

  async function finish(channel: Channel): Promise<void> {
    if (topology.form === 'temporary') await channel.deleteQueue(topology.queue);
    else await flushAcknowledgements(channel, topology.queue);
    await channel.close();
  }

  async function close(): Promise<void> {
    isClosing = true;
    const last = current;
    current = undefined;
    // It rejects if the connection is gone.
    if (last !== undefined)
      await orAfter(
        finish(last).catch(() => {}),
        CLOSE_TIMEOUT_MS,
      );
    await connection.close();
  }

  return {
    started: connection.started,
    isConnected: () => current !== undefined,
    standing: () => (current === undefined ? 'unknown' : standing),
    close,
  };
}
