// A real subscriber: declares a queue, binds it to the exchange and passes on each event as it arrives. `tallyhook tail` and
// the demo use it. It knows only what any team with its own subscriber would know.

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
  readonly close: () => Promise<void>;
};

const PREFETCH = 100;
const HEARTBEAT_S = 10;
const RECONNECT_MAX_MS = 5_000;

/**
 * Resolves when the queue is bound and consumed. Reconnects by itself. A message is acknowledged after
 * `onEvent` returned; if that throws or rejects, the message goes back to the queue.
 *
 * Without `queue`, the queue is exclusive: it is deleted with the connection, and events that arrive until the next
 * connection are lost. With `queue`, it is durable and keeps them.
 * @param bindings routing keys: `job.#`, `job.completed.*`, `job.*.team-a`.
 */
export async function subscribe(options: {
  amqpUrl: string;
  exchange: string;
  queue?: string | undefined;
  bindings: readonly string[];
  onEvent: (event: ReceivedEvent) => void | Promise<void>;
  onTrouble?: (error: Error) => void;
}): Promise<Subscription> {
  const { exchange, queue, bindings, onEvent, onTrouble = () => {} } = options;
  let boundQueue = '';

  async function setup(model: ChannelModel): Promise<void> {
    model.on('error', onTrouble);
    const channel = await model.createChannel();
    channel.on('error', onTrouble);
    // The channel can close alone, as when the queue is deleted. Only a new connection brings a new channel.
    channel.on('close', () => void model.close().catch(() => {}));
    await channel.assertExchange(exchange, 'topic', { durable: true });
    const declared = queue
      ? await channel.assertQueue(queue, { durable: true })
      : await channel.assertQueue('', { exclusive: true, autoDelete: true, durable: false });
    for (const binding of bindings) await channel.bindQueue(declared.queue, exchange, binding);
    await channel.prefetch(PREFETCH);
    await channel.consume(declared.queue, (message) => {
      if (message === null) void channel.close().catch(() => {});
      else void consume(channel, message);
    });
    boundQueue = declared.queue;
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
  connection.on('error', onTrouble);
  return { queue: boundQueue, close: () => connection.close() };
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
