// The demo's subscriber, with the package's own: a temporary queue that gets everything, in its order, and drops no copy, since the
// demo counts them.

import { parseIfJson } from '../../src/base/json/json.ts';
import { createSubscriber, type MessageDelivery, type Subscriber } from '../../src/subscriber/index.ts';
import type { Received } from './compare.ts';

export async function receive(
  { amqpUrl, exchange }: { readonly amqpUrl: string; readonly exchange: string },
  onReceived: (received: Received) => void,
): Promise<Subscriber> {
  const decoder = new TextDecoder();
  const take = (_: unknown, { body, routingKey, messageId, contentType, redelivered }: MessageDelivery) =>
    onReceived({
      routingKey,
      messageId,
      contentType,
      redelivered,
      event: parseIfJson(decoder.decode(body)),
    });
  return await createSubscriber({
    url: amqpUrl,
    exchange,
    queue: { temporary: 'tallyhook.subscriber.' },
    bindings: ['job.#'],
    order: 'queue',
    dedup: false,
    on: { completed: take, failed: take, progress: take, unknown: take, invalid: take },
  });
}
