// A real subscriber: declares a queue, binds it to the exchange and passes on each event as it arrives. `tallyhook tail` and
// the demo use it. It knows only what any team with its own subscriber would know.

import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Channel, type ChannelModel, type ConsumeMessage, connect } from 'amqplib';
import { parseIfJson } from '../json.ts';

export type ReceivedEvent = {
  readonly routingKey: string;
  readonly messageId: string | undefined;
  readonly contentType: string | undefined;
  /** The broker delivered it before, to us or to another consumer of the queue. */
  readonly redelivered: boolean;
  /** The CloudEvent, parsed; undefined if the body is not JSON. */
  readonly event: unknown;
  /** The bytes as they came. */
  readonly body: Buffer;
};

export type Subscription = {
  readonly queue: string;
  /** Of the queue, when it was first opened: it shares its events with them. */
  readonly otherConsumers: number;
  /** Deletes the queue if it was the subscription's own. */
  readonly close: () => Promise<void>;
};

/** `back_without_queue`: connected again, but the broker no longer had the queue. Its events are lost to this subscriber. */
export type ConnectionChange = 'lost' | 'back' | 'back_without_queue';

const PREFETCH = 100;
const HEARTBEAT_S = 10;
const RECONNECT_MAX_MS = 5_000;
const NOT_FOUND = 404;
/** A connection that is gone without a word must not hold up the end. */
const DELETE_TIMEOUT_MS = 1_000;

/**
 * A queue of the subscription's own. It survives a restart of the broker, and goes by itself when the subscriber died. Without
 * a consumer it has room for five minutes of 300 events a second; beyond that the broker drops the oldest. (Refusing new ones
 * instead would hold up the relay.)
 */
const OWN_QUEUE = {
  durable: true,
  expires: 5 * 60_000,
  maxLength: 100_000,
  arguments: { 'x-max-length-bytes': 128 * 1024 * 1024 },
};

/**
 * Resolves when the queue is bound and consumed. Reconnects by itself. A message is acknowledged after
 * `onEvent` returned; if that throws or rejects, the message goes back to the queue. Messages that were not acknowledged
 * when the connection was lost come again.
 *
 * Without `queue`, the queue has a random name and is deleted by `close`. A `queue` that exists is used as it is: its
 * arguments and bindings are its owner's. One that does not exist is made, durable, and bound. Both kinds keep what arrives
 * while the connection is lost.
 * @param bindings routing keys: `job.#`, `job.completed.*`, `job.*.team-a`; for a queue that is made.
 */
export async function subscribe(options: {
  amqpUrl: string;
  exchange: string;
  queue?: string | undefined;
  bindings: readonly string[];
  onEvent: (event: ReceivedEvent) => void | Promise<void>;
  onTrouble?: (error: Error) => void;
  onConnection?: (change: ConnectionChange) => void;
}): Promise<Subscription> {
  const { exchange, bindings, onEvent, onTrouble = () => {}, onConnection = () => {} } = options;
  const queue = options.queue ?? `tallyhook.subscriber.${randomBytes(8).toString('hex')}`;
  let open: Channel | undefined;
  let wasBound = false;
  let isOurs = options.queue === undefined; // then its bindings are ours to make, again if the exchange was made anew
  let otherConsumers = 0;
  let isQueueLost = false; // stays until it is told, since `setup` may fail after it made the queue anew
  let isClosing = false;

  async function setup(model: ChannelModel): Promise<void> {
    model.on('error', onTrouble);
    const found = await findQueue(model, queue);
    if (wasBound && !isQueueLost) isQueueLost = found === undefined;
    if (!wasBound) otherConsumers = found?.consumers ?? 0;
    const channel = await model.createChannel();
    channel.on('error', onTrouble);
    // The channel can close alone, as when the queue is deleted. Only a new connection brings a new channel.
    channel.on('close', () => {
      if (!isClosing) void model.close().catch(() => {});
    });
    await channel.assertExchange(exchange, 'topic', { durable: true });
    if (found === undefined) {
      isOurs = true;
      await channel.assertQueue(queue, options.queue === undefined ? OWN_QUEUE : { durable: true });
    }
    if (isOurs) for (const binding of bindings) await channel.bindQueue(queue, exchange, binding);
    await channel.prefetch(PREFETCH);
    if (wasBound) onConnection(isQueueLost ? 'back_without_queue' : 'back');
    isQueueLost = false;
    await channel.consume(queue, (message) => {
      if (message !== null) void consume(channel, message);
      else if (!isClosing) void channel.close().catch(() => {});
    });
    open = channel;
    wasBound = true;
  }

  async function consume(channel: Channel, message: ConsumeMessage): Promise<void> {
    let isHandled = true;
    try {
      await onEvent(toReceivedEvent(message));
    } catch (error) {
      isHandled = false;
      onTrouble(error instanceof Error ? error : new Error('onEvent failed', { cause: error }));
    }
    try {
      if (isHandled) channel.ack(message);
      else channel.nack(message);
    } catch {
      // The channel is closed: the broker delivers the message again.
    }
  }

  const url = new URL(options.amqpUrl);
  if (!url.searchParams.has('heartbeat')) url.searchParams.set('heartbeat', String(HEARTBEAT_S));
  const connection = await connect(url.href, {
    timeout: 3_000,
    clientProperties: { connection_name: 'tallyhook subscriber' },
    recovery: { maxDelay: RECONNECT_MAX_MS, initialMaxRetries: 3, setup },
  });
  connection.on('error', () => {}); // the model's listener has told it
  connection.on('disconnect', () => {
    open = undefined;
    if (!isClosing) onConnection('lost');
  });

  async function close(): Promise<void> {
    isClosing = true;
    if (options.queue === undefined && open !== undefined) await deleteQueue(open, queue);
    await connection.close();
  }

  return { queue, otherConsumers, close };
}

async function findQueue(
  model: ChannelModel,
  queue: string,
): Promise<{ readonly consumers: number } | undefined> {
  const channel = await model.createChannel();
  channel.on('error', () => {}); // a queue that is missing closes the channel
  try {
    const { consumerCount } = await channel.checkQueue(queue);
    await channel.close();
    return { consumers: consumerCount };
  } catch (error) {
    if ((error as { code?: unknown }).code === NOT_FOUND) return undefined;
    throw error;
  }
}

/** A queue that cannot be deleted now expires. */
async function deleteQueue(channel: Channel, queue: string): Promise<void> {
  const deleted = (async () => channel.deleteQueue(queue))().catch(() => {});
  await Promise.race([deleted, sleep(DELETE_TIMEOUT_MS, undefined, { ref: false })]);
}

function toReceivedEvent({ content, fields, properties }: ConsumeMessage): ReceivedEvent {
  return {
    routingKey: fields.routingKey,
    messageId: properties.messageId as string | undefined,
    contentType: properties.contentType as string | undefined,
    redelivered: fields.redelivered,
    event: parseIfJson(content.toString('utf8')),
    body: content,
  };
}
