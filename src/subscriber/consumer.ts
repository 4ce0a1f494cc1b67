// Consumes the queue, over any number of connections: declares what is needed, passes on each message, and says what happens to
// the connection. At its end no acknowledgement is left behind.

import type { Channel } from 'amqplib';
import { keepConnected, type Link } from './connection.ts';
import { flushAcknowledgements } from './flush.ts';
import { type Incoming, toIncoming } from './incoming.ts';
import type { Tell } from './notices.ts';
import { orAfter } from './or-after.ts';
import type { Settings } from './settings.ts';
import { declareTopology, toSubscriberError } from './topology.ts';

export type Consumer = {
  /** As `Connection.started`. */
  readonly started: Promise<void>;
  readonly isConnected: () => boolean;
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
  let wasConnected = false;
  let isOurs = false;
  let isClosing = false;
  let isQueueLost = false; // stays until it is told, since a setup may fail after it made the queue anew

  async function setup(link: Link): Promise<void> {
    stopping.throwIfAborted();
    const { wasMissing, otherConsumers } = await declareTopology(link.model, topology, isOurs);
    isOurs ||= wasMissing;
    if (wasConnected) isQueueLost ||= wasMissing;
    const channel = await link.model.createChannel();
    channel.on('error', link.fail);
    channel.on('close', () => {
      // Later: if the connection closed with it, that says why.
      setImmediate(() => isClosing || link.fail(new Error('the broker closed the channel')));
    });
    await channel.prefetch(settings.prefetch);
    await consume(link, channel);
    current = channel;
    const { queue } = topology;
    tell({ type: 'connected', queue, again: wasConnected, queueWasGone: isQueueLost, otherConsumers });
    wasConnected = true;
    isQueueLost = false;
  }

  async function consume(link: Link, channel: Channel): Promise<void> {
    try {
      await channel.consume(topology.queue, (message) => {
        if (message !== null)
          options.onIncoming(toIncoming(message, { channel, link, order: settings.order }));
        else if (!isClosing) link.fail(new Error(`queue '${topology.queue}' was deleted`));
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

  return { started: connection.started, isConnected: () => current !== undefined, close };
}
