// An independent subscriber, as a team would write it with amqplib alone: it has a durable quorum queue, connects straight
// to RabbitMQ, reconnects by itself, and acknowledges each message after it has recorded it.

import { type Channel, type ChannelModel, type ConsumeMessage, connect } from 'amqplib';
import type { Message, Properties } from './recorded.ts';
import { pause, until } from '../support/until.ts';

export type Subscriber = AsyncDisposable & {
  readonly queue: string;
  readonly messages: readonly Message[];
  readonly has: (id: string) => boolean;
  readonly bind: () => Promise<void>;
  readonly unbind: () => Promise<void>;
  /** Unbinds it, waits until its messages were received, and deletes it: nothing is lost with it. */
  readonly deleteQueue: () => Promise<void>;
  /** How many messages are in the queue; undefined while it cannot be asked. */
  readonly waiting: () => Promise<number | undefined>;
};

const QUEUE = 'torture.subscriber';
const BINDING = 'job.#';
const PREFETCH = 200;
const RECONNECT_MS = 200;
const CLOSE_LIMIT_MS = 5_000;
/** A quorum queue that was declared one second before RabbitMQ 3.10 was killed never had a leader again. */
const SETTLE_MS = 4_000;
const CONNECT_LIMIT_MS = 3_000;
/** Within this time a broker that runs must accept the connection and carry out the operation. */
const OPERATION_LIMIT_MS = 30_000;

/** Resolves when the queue is bound and consumed. */
export async function startSubscriber(options: {
  /** Each is tried in its turn. */
  urls: readonly string[];
  exchange: string;
  /** Gets the properties and headers of every message, to be searched for secrets. */
  onProperties: (text: string) => void;
}): Promise<Subscriber> {
  const { urls, exchange, onProperties } = options;
  const messages: Message[] = [];
  const ids = new Set<string>();
  let channel: Channel | undefined;
  let connection: ChannelModel | undefined;
  let isEnding = false;
  let isDeleted = false; // on purpose: it must not be declared again yet
  let isNew = true;
  let turn = 0;

  function receive(from: Channel, message: ConsumeMessage): void {
    const { deliveryMode, contentType, type, messageId, appId } = message.properties as Properties;
    const id = String(messageId);
    onProperties(JSON.stringify(message.properties));
    messages.push({
      atMs: performance.now(),
      id,
      routingKey: message.fields.routingKey,
      redelivered: message.fields.redelivered,
      properties: { deliveryMode, contentType, type, messageId, appId },
      text: message.content.toString('utf8'),
    });
    ids.add(id);
    try {
      from.ack(message);
    } catch {
      // The channel is closed: the broker will deliver it again, marked as redelivered.
    }
  }

  async function consume(opened: Channel): Promise<void> {
    await opened.assertQueue(QUEUE, { durable: true, arguments: { 'x-queue-type': 'quorum' } });
    await opened.consume(QUEUE, (message) => {
      if (message !== null) receive(opened, message);
      else if (!isDeleted) void opened.close().catch(() => {});
    });
  }

  /** Connects, consumes, and resolves when the connection ends. */
  async function consumeOnce(): Promise<void> {
    const model = await connect(urls[turn++ % urls.length] as string, { timeout: CONNECT_LIMIT_MS });
    connection = model;
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    model.on('error', () => {});
    model.on('close', () => resolve());
    try {
      const opened = await model.createChannel();
      opened.on('error', () => {});
      opened.on('close', () => void model.close().catch(() => {}));
      await opened.prefetch(PREFETCH);
      if (!isDeleted) await consume(opened);
      channel = opened;
      await closed;
    } finally {
      channel = undefined;
      await model.close().catch(() => {});
    }
  }

  async function consumeForEver(): Promise<void> {
    while (!isEnding) {
      await consumeOnce().catch(() => {}); // the broker is down: tried again
      if (!isEnding) await pause(RECONNECT_MS);
    }
  }

  /** Acts on the present channel, and tries again until it succeeds. */
  async function operate<T>(what: string, act: (on: Channel) => Promise<T>): Promise<T> {
    return until(
      what,
      async () => {
        const on = channel;
        return on === undefined ? undefined : { result: await act(on) };
      },
      { limitMs: OPERATION_LIMIT_MS },
    ).then(({ result }) => result);
  }

  const bind = () =>
    operate('the queue is bound', async (on) => {
      await on.assertExchange(exchange, 'topic', { durable: true });
      if (isDeleted) await consume(on);
      isDeleted = false;
      await on.bindQueue(QUEUE, exchange, BINDING);
    }).then(settle);
  /** No fault may strike while the queue is new. */
  async function settle(): Promise<void> {
    if (isNew) await pause(SETTLE_MS);
    isNew = false;
  }
  const unbind = () =>
    operate('unbound', async (on) => void (await on.unbindQueue(QUEUE, exchange, BINDING)));
  const waiting = async () => (await channel?.checkQueue(QUEUE))?.messageCount;

  async function deleteQueue(): Promise<void> {
    await unbind();
    // Only once it is empty and everything is acknowledged. Its consumer ends with it.
    await operate('the queue is emptied and deleted', async (on) => {
      if ((await on.checkQueue(QUEUE)).messageCount > 0) throw new Error('not empty yet');
      isDeleted = true;
      isNew = true;
      await on.deleteQueue(QUEUE);
    });
  }

  const consuming = consumeForEver();
  await bind();
  return {
    queue: QUEUE,
    messages,
    has: (id) => ids.has(id),
    bind,
    unbind,
    deleteQueue,
    waiting,
    [Symbol.asyncDispose]: async () => {
      isEnding = true;
      // A connection that was lost in a fault may never emit `close`.
      await Promise.race([connection?.close().catch(() => {}), pause(CLOSE_LIMIT_MS)]);
      await Promise.race([consuming, pause(CLOSE_LIMIT_MS)]);
    },
  };
}
