// For tests of the subscriber: an exchange of its own, on which events are published as the relay does, and subscribers of queues
// that are deleted at the end.

import { type Channel, type ChannelModel, connect } from 'amqplib';
import type { Kind } from '../../src/event/index.ts';
import {
  createSubscriber,
  type Notice,
  type Subscriber,
  type SubscriberOptions,
} from '../../src/subscriber/index.ts';
import { messageOf, type MessageOptions, sampleEvent } from '../../src/testing/index.ts';
import { amqpUrl, newExchange } from './bus.ts';
import { until } from './until.ts';

export type SampleEvent = {
  readonly job: string;
  /** Progress if there is a percentage, else completed. */
  readonly percent?: number;
  readonly kind?: Kind;
  readonly source?: string;
};

export type SubscriberWorld = AsyncDisposable & {
  readonly url: string;
  readonly exchange: string;
  readonly queue: string;
  readonly channel: Channel;
  /** Resolves when the broker has confirmed all. @returns their ids */
  readonly publish: (events: readonly SampleEvent[], options?: MessageOptions) => Promise<string[]>;
  /** Publishes any bytes. */
  readonly publishRaw: (routingKey: string, body: string | object, messageId?: string) => Promise<void>;
  /** With the world's exchange and queue. It is stopped at the end. Its notices are in `notices`. */
  readonly subscribe: <Tx = undefined>(options: Partial<SubscriberOptions<Tx>>) => Promise<Subscriber>;
  readonly notices: Notice[];
  readonly noticesOf: <Type extends Notice['type']>(type: Type) => Extract<Notice, { type: Type }>[];
  readonly untilNotice: <Type extends Notice['type']>(
    type: Type,
    count?: number,
  ) => Promise<Extract<Notice, { type: Type }>[]>;
  /** Messages that are ready in a queue of the broker. */
  readonly depth: (queue: string) => Promise<number>;
  readonly untilDepth: (queue: string, depth: number) => Promise<unknown>;
};

const LIMIT_MS = 20_000;

export async function startSubscriberWorld(url = amqpUrl()): Promise<SubscriberWorld> {
  const exchange = newExchange();
  const queue = `${exchange}.queue`;
  const connection: ChannelModel = await connect(url);
  connection.on('error', () => {}); // a test may close all connections
  const channel = await connection.createConfirmChannel();
  channel.on('error', () => {});
  await channel.assertExchange(exchange, 'topic', { durable: true });
  const subscribers: Subscriber[] = [];
  const notices: Notice[] = [];
  let sequence = 0;

  async function publish(events: readonly SampleEvent[], options: MessageOptions = {}): Promise<string[]> {
    const ids = events.map(
      ({ job, percent, kind = percent === undefined ? 'completed' : 'progress', source }) => {
        sequence += 1;
        const event = sampleEvent({ kind, job, percent, source, sequence });
        const { routingKey, content, properties } = messageOf(event, options);
        channel.publish(exchange, routingKey, content, { ...properties, mandatory: true });
        return event.id;
      },
    );
    await channel.waitForConfirms();
    return ids;
  }

  const noticesOf = <Type extends Notice['type']>(type: Type) =>
    notices.filter((notice): notice is Extract<Notice, { type: Type }> => notice.type === type);

  const depth = async (name: string) => (await channel.checkQueue(name)).messageCount;

  return {
    url,
    exchange,
    queue,
    channel,
    publish,
    publishRaw: async (routingKey, body, messageId) => {
      const content = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
      channel.publish(exchange, routingKey, content, messageId === undefined ? {} : { messageId });
      await channel.waitForConfirms();
    },
    subscribe: async (options) => {
      const subscriber = await createSubscriber({
        url,
        exchange,
        queue,
        on: {},
        backoff: { firstMs: 1, maxMs: 5 },
        ...options,
        onNotice: (notice) => {
          notices.push(notice);
          options.onNotice?.(notice);
        },
      } as SubscriberOptions);
      subscribers.push(subscriber);
      return subscriber;
    },
    notices,
    noticesOf,
    untilNotice: (type, count = 1) =>
      until(
        `${count} notices of ${type}`,
        () => {
          const found = noticesOf(type);
          return found.length >= count ? found : undefined;
        },
        { limitMs: LIMIT_MS },
      ),
    depth,
    untilDepth: (name, wanted) =>
      until(
        `${wanted} messages in ${name}`,
        async () => ((await depth(name)) === wanted ? true : undefined),
        {
          limitMs: LIMIT_MS,
        },
      ),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(subscribers.map((subscriber) => subscriber.stop()));
      await deleteAll(url, exchange, queue);
      await connection.close().catch(() => {});
    },
  };
}

/** On a connection of its own: the test may have closed the other. */
async function deleteAll(url: string, exchange: string, queue: string): Promise<void> {
  const connection = await connect(url);
  const channel = await connection.createChannel();
  for (const name of [queue, `${queue}.dead`]) await channel.deleteQueue(name);
  for (const name of [exchange, `${queue}.dead`]) await channel.deleteExchange(name);
  await connection.close();
}
