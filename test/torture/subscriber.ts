// An independent subscriber, as a team would write it on amqplib alone: a durable quorum queue of its own, connected
// straight to RabbitMQ, reconnecting by itself, acknowledging after it has recorded. Keeps every message as it came.

import { type Channel, type ChannelModel, type ConsumeMessage, connect } from 'amqplib';
import type { Message, Properties } from './recorded.ts';
import { pause, until } from '../support/until.ts';

export type Subscriber = AsyncDisposable & {
  readonly queue: string;
  readonly messages: readonly Message[];
  readonly has: (id: string) => boolean;
  readonly bind: () => Promise<void>;
  readonly unbind: () => Promise<void>;
  /** Unbinds it, waits until what it held was received, and deletes it: nothing is lost with it. */
  readonly deleteQueue: () => Promise<void>;
  /** How many messages wait in the queue; undefined while that cannot be told. */
  readonly waiting: () => Promise<number | undefined>;
};

const QUEUE = 'torture.subscriber';
const BINDING = 'job.#';
const PREFETCH = 200;
const RECONNECT_MS = 200;
const CLOSE_LIMIT_MS = 5_000;
/** A quorum queue that was declared a second before RabbitMQ 3.10 was killed came back without a leader, for good. */
const SETTLE_MS = 4_000;
const CONNECT_LIMIT_MS = 3_000;
/** Within this a broker that runs must have let us in and done what we asked. */
const OPERATION_LIMIT_MS = 30_000;

/** Resolves when the queue is bound and consumed. */
export async function startSubscriber(options: {
  url: string;
  exchange: string;
  /** The properties and headers of every message go by here, to be searched. */
  onProperties: (text: string) => void;
}): Promise<Subscriber> {
  const { url, exchange, onProperties } = options;
  const messages: Message[] = [];
  const ids = new Set<string>();
  let channel: Channel | undefined;
  let connection: ChannelModel | undefined;
  let isEnding = false;
  let isDeleted = false; // on purpose: do not bring it back yet
  let isNew = true;

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
      // The channel is gone: the broker hands it out again, and says so.
    }
  }

  async function consume(opened: Channel): Promise<void> {
    await opened.assertQueue(QUEUE, { durable: true, arguments: { 'x-queue-type': 'quorum' } });
    await opened.consume(QUEUE, (message) => {
      if (message !== null) receive(opened, message);
      else if (!isDeleted) void opened.close().catch(() => {});
    });
  }

  /** One connection, from its beginning to its end. */
  async function live(): Promise<void> {
    const model = await connect(url, { timeout: CONNECT_LIMIT_MS });
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

  async function liveOn(): Promise<void> {
    while (!isEnding) {
      await live().catch(() => {}); // the broker is away: once more
      if (!isEnding) await pause(RECONNECT_MS);
    }
  }

  /** On whatever channel lives, as often as it takes. */
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
  /** Nothing strikes while the queue is new. */
  async function settle(): Promise<void> {
    if (isNew) await pause(SETTLE_MS);
    isNew = false;
  }
  const unbind = () =>
    operate('unbound', async (on) => void (await on.unbindQueue(QUEUE, exchange, BINDING)));
  const waiting = async () => (await channel?.checkQueue(QUEUE))?.messageCount;

  async function deleteQueue(): Promise<void> {
    await unbind();
    // Only if it is empty and all is acknowledged; our consumer goes with it.
    await operate('the queue is emptied and deleted', async (on) => {
      if ((await on.checkQueue(QUEUE)).messageCount > 0) throw new Error('not empty yet');
      isDeleted = true;
      isNew = true;
      await on.deleteQueue(QUEUE);
    });
  }

  const living = liveOn();
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
      // A connection that was lost in a fault may never say that it is closed.
      await Promise.race([connection?.close().catch(() => {}), pause(CLOSE_LIMIT_MS)]);
      await Promise.race([living, pause(CLOSE_LIMIT_MS)]);
    },
  };
}
