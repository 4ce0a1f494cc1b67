// A subscriber: consumes a queue of events, calls one function for each kind, and acknowledges an event after its function. It
// keeps a job's order, tries again, dead-letters, reconnects, and stops without losing or repeating an event.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Channel } from 'amqplib';
import { keepConnected, type Link } from './connection.ts';
import { flushAcknowledgements } from './flush.ts';
import { createHandle } from './handle.ts';
import { type Incoming, toIncoming } from './incoming.ts';
import { createLanes } from './lanes.ts';
import { createTeller } from './notices.ts';
import { settle, type SubscriberOptions } from './options.ts';
import { SETTLE_MS } from './time-limit.ts';
import { declareTopology, toSubscriberError } from './topology.ts';

export type SubscriberState = {
  readonly connected: boolean;
  /** Handlers that run now. */
  readonly running: number;
  /** Events that have come and wait for their turn. */
  readonly waiting: number;
};

export type Subscriber = AsyncDisposable & {
  readonly queue: string;
  readonly state: () => SubscriberState;
  /**
   * Begins no further event, waits for the handlers that run and acknowledges their events, returns the others to the queue, and
   * disconnects. After `stopLimitMs` it aborts the signals of the handlers. Never rejects. Safe to call twice.
   */
  readonly stop: () => Promise<void>;
  /** Resolves when it has stopped, by `stop` or by the signal. */
  readonly stopped: Promise<void>;
};

/**
 * Resolves when the queue is consumed for the first time. While the broker cannot be reached, or the exchange does not exist, it
 * tries again, for ever; `onNotice` hears of it.
 *
 * @throws TypeError if an option is not valid
 * @throws SubscriberError if the broker refuses the account, or the queue exists in another form. Later such errors are notices.
 * @throws the signal's reason, if it aborts before the first connection
 */
export async function createSubscriber<Tx = undefined>(options: SubscriberOptions<Tx>): Promise<Subscriber> {
  const settings = settle(options);
  const { topology, signal } = settings;
  const tell = createTeller(settings.onNotice);
  const stopping = new AbortController();
  const abandoning = new AbortController();
  const handle = createHandle({
    settings,
    tell,
    stopping: stopping.signal,
    abandoning: abandoning.signal,
  });
  const lanes = createLanes<Incoming>({ concurrency: settings.concurrency, run: handle });
  let current: { readonly link: Link; readonly channel: Channel } | undefined;
  let wasConnected = false;
  let isOurs = false;
  let isClosing = false;
  let isQueueLost = false; // stays until it is told, since a setup may fail after it made the queue anew

  async function setup(link: Link): Promise<void> {
    if (stopping.signal.aborted) throw new Error('the subscriber stops');
    const { wasMissing, otherConsumers } = await declareTopology(link.model, topology, isOurs);
    isOurs ||= wasMissing;
    if (wasConnected) isQueueLost ||= wasMissing;
    const channel = await link.model.createChannel();
    channel.on('error', link.fail);
    channel.on('close', () => {
      if (!isClosing) link.fail(new Error('the broker closed the channel'));
    });
    await channel.prefetch(settings.prefetch);
    current = { link, channel };
    await consume(link, channel);
    tell({
      type: 'connected',
      queue: topology.queue,
      again: wasConnected,
      queueWasGone: isQueueLost,
      otherConsumers,
    });
    wasConnected = true;
    isQueueLost = false;
  }

  async function consume(link: Link, channel: Channel): Promise<void> {
    try {
      await channel.consume(topology.queue, (message) => {
        if (message === null) {
          if (!isClosing) link.fail(new Error(`queue '${topology.queue}' was deleted`));
          return;
        }
        const incoming = toIncoming(message, { channel, link, order: settings.order });
        lanes.push(incoming.lane, incoming);
      });
    } catch (error) {
      throw toSubscriberError(error, topology);
    }
  }

  const connection = keepConnected({
    url: settings.url,
    name: `tallyhook subscriber ${topology.queue}`,
    setup,
    onLost: (error) => {
      current = undefined;
      // Copies of these come with the next connection. What runs goes on: its copy waits in the same lane.
      lanes.dropWaiting((incoming) => !incoming.isSettleable());
      tell({ type: 'lost', error });
    },
    onFailed: (error, retryInMs) =>
      stopping.signal.aborted || tell({ type: 'unreachable', error, retryInMs }),
  });

  async function stop(): Promise<void> {
    tell({ type: 'stopping' });
    stopping.abort();
    const returned = lanes.close();
    await orAfter(lanes.idle(), settings.stopLimitMs);
    const unfinished = lanes.counts().running;
    abandoning.abort(new Error('the subscriber stops'));
    if (unfinished > 0) await orAfter(lanes.idle(), SETTLE_MS);
    isClosing = true;
    // Closing the channel, and not cancelling the consumer first: with a single active consumer the broker would activate the
    // next one at a cancel, while this one still works on a job's earlier events.
    const last = current;
    current = undefined;
    if (last !== undefined) await close(last.channel);
    await connection.close();
    signal?.removeEventListener('abort', onAbort);
    tell({ type: 'stopped', returned, unfinished });
    ended.resolve();
  }

  async function close(channel: Channel): Promise<void> {
    const { form, queue } = topology;
    const closed = async () => {
      if (form === 'temporary') await channel.deleteQueue(queue);
      else await flushAcknowledgements(channel, queue);
      await channel.close();
    };
    await orAfter(
      closed().catch(() => {}), // the connection is gone
      CLOSE_TIMEOUT_MS,
    );
  }

  let stopped: Promise<void> | undefined;
  const ended = Promise.withResolvers<void>();
  const stopOnce = (): Promise<void> => {
    stopped ??= stop();
    return stopped;
  };
  const onAbort = () => void stopOnce();
  signal?.addEventListener('abort', onAbort, { once: true });
  if (signal?.aborted) onAbort();
  try {
    await connection.started;
  } catch (error) {
    signal?.removeEventListener('abort', onAbort);
    await (signal?.aborted ? stopOnce() : connection.close());
    throw signal?.aborted ? signal.reason : error;
  }
  return {
    queue: topology.queue,
    state: () => ({ connected: current !== undefined, ...lanes.counts() }),
    stop: stopOnce,
    stopped: ended.promise,
    [Symbol.asyncDispose]: stopOnce,
  };
}

/** A broker that does not answer must not hold up the end for long; a busy one needs time for many acknowledgements. */
const CLOSE_TIMEOUT_MS = 5_000;

async function orAfter(promise: Promise<unknown>, ms: number): Promise<void> {
  const over = new AbortController();
  await Promise.race([promise, sleep(ms, undefined, { signal: over.signal }).catch(() => {})]);
  over.abort();
}
