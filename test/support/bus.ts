// Subscribers for tests, each with a queue of its own on the exchange and every message in the order of arrival: one that
// lasts as long as its connection, and a durable one that survives the broker.

import { randomBytes } from 'node:crypto';
import { type Channel, type ChannelModel, connect } from 'amqplib';
import { createSubscriber, type MessageDelivery } from '../../src/subscriber/index.ts';
import { TEMPLATE } from './database.ts';
import type { Received } from './facts.ts';
import { waitFor } from './waits.ts';

export type BusMessage = {
  readonly id: string;
  readonly routingKey: string;
  readonly properties: Record<string, unknown>;
  readonly text: string;
  /** The CloudEvent. */
  readonly event: Record<string, unknown> & { data: Record<string, unknown> };
};

export type Bus = AsyncDisposable & {
  readonly queue: string;
  readonly messages: readonly BusMessage[];
  readonly ids: () => string[];
  /** Waits until so many messages have arrived, and returns them. */
  readonly received: (count: number, timeoutMs?: number) => Promise<readonly BusMessage[]>;
  /** To bind, delete and the like. */
  readonly channel: Channel;
};

export function amqpUrl(): string {
  const url = process.env['TEST_AMQP_URL'];
  if (!url) throw new Error('TEST_AMQP_URL is not set: run the tests with "npm test"');
  return url;
}

/** The exchange of services whose events no test consumes. It is deleted after the last test. */
export const UNHEARD = `test.unheard.${TEMPLATE}`;

export const newExchange = (): string => `test.${randomBytes(6).toString('hex')}`;

/** Receives what is published from now on. `exchange` is declared if it does not exist, and deleted at the end. */
export async function listen(
  exchange: string,
  options: { url?: string; bindings?: string[]; queue?: string } = {},
): Promise<Bus> {
  const connection: ChannelModel = await connect(options.url ?? amqpUrl());
  connection.on('error', () => {});
  const channel = await connection.createChannel();
  channel.on('error', () => {});
  await channel.assertExchange(exchange, 'topic', { durable: true });
  const { queue } = await channel.assertQueue(options.queue ?? '', {
    exclusive: options.queue === undefined,
  });
  for (const binding of options.bindings ?? ['job.#']) await channel.bindQueue(queue, exchange, binding);
  const messages: BusMessage[] = [];
  await channel.consume(
    queue,
    (message) => {
      if (message === null) return;
      const text = message.content.toString('utf8');
      messages.push({
        id: String(message.properties.messageId),
        routingKey: message.fields.routingKey,
        properties: { ...message.properties },
        text,
        event: JSON.parse(text) as BusMessage['event'],
      });
    },
    { noAck: true },
  );
  return {
    queue,
    messages,
    channel,
    ids: () => messages.map((message) => message.id),
    received: async (count, timeoutMs) => {
      await receivedOf({ messages }, () => true, count, timeoutMs);
      return messages;
    },
    [Symbol.asyncDispose]: async () => {
      await channel.deleteExchange(exchange).catch(() => {});
      await connection.close().catch(() => {});
    },
  };
}

/** Waits until so many messages of this kind have arrived, and returns those: for a subscriber that tests share. */
export function receivedOf(
  { messages }: Pick<Bus, 'messages'>,
  isWanted: (message: BusMessage) => boolean,
  count: number,
  timeoutMs = 15_000,
): Promise<readonly BusMessage[]> {
  return waitFor(
    () => {
      const found = messages.filter(isWanted);
      if (found.length < count) throw new Error(`${found.length} of ${count} messages so far`);
      return found;
    },
    { timeout: timeoutMs, interval: 20 },
  );
}

type Arrival = Received & Pick<BusMessage, 'text'> & { readonly atMs: number };

type DurableSubscriber = AsyncDisposable & {
  readonly messages: readonly Arrival[];
  readonly ids: () => string[];
  /** Waits until each of these ids has arrived at least once. */
  readonly receivedAll: (ids: Iterable<string>, timeoutMs?: number) => Promise<void>;
};

/** Reconnects by itself and misses no event. Resolves when its queue, named after the exchange, is bound. */
export async function subscribeDurably(
  url: string,
  exchange: string,
  options: { bindings?: string[] } = {},
): Promise<DurableSubscriber> {
  const messages: Arrival[] = [];
  const keep = (event: unknown, { messageId, body }: MessageDelivery) => {
    messages.push({
      id: String(messageId),
      event: event as BusMessage['event'],
      text: Buffer.from(body).toString('utf8'),
      atMs: performance.now(),
    });
  };
  const subscriber = await createSubscriber({
    url,
    exchange,
    declareExchange: true,
    queue: `${exchange}.queue`,
    bindings: options.bindings ?? ['job.#'],
    order: 'queue',
    dedup: false, // copies are counted
    on: { completed: keep, failed: keep, progress: keep },
    onNotice: () => {},
  });
  const ids = () => messages.map(({ id }) => id);
  return {
    messages,
    ids,
    receivedAll: (expected, timeoutMs = 20_000) =>
      waitFor(
        () => {
          const received = new Set(ids());
          const missing = [...expected].filter((id) => !received.has(id));
          if (missing.length > 0) throw new Error(`${missing.length} are missing, as ${missing[0]}`);
        },
        { timeout: timeoutMs, interval: 50 },
      ),
    [Symbol.asyncDispose]: subscriber.stop,
  };
}
