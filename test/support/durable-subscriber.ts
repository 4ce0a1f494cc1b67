// A subscriber whose queue outlives the broker: it reconnects by itself and misses nothing.

import { subscribe } from '../../src/subscriber/subscribe.ts';
import { vi } from 'vitest';
import type { BusMessage } from './bus.ts';
import type { Received } from './facts.ts';

type DurableSubscriber = AsyncDisposable & {
  readonly messages: readonly (Received & Pick<BusMessage, 'text'>)[];
  readonly ids: () => string[];
  /** Waits until each of these ids has come at least once. */
  readonly receivedAll: (ids: Iterable<string>, timeoutMs?: number) => Promise<void>;
};

/** Resolves when the queue, named after the exchange, is bound. */
export async function subscribeDurably(
  url: string,
  exchange: string,
  options: { bindings?: string[] } = {},
): Promise<DurableSubscriber> {
  const messages: (Received & Pick<BusMessage, 'text'>)[] = [];
  const subscription = await subscribe({
    amqpUrl: url,
    exchange,
    queue: `${exchange}.queue`,
    bindings: options.bindings ?? ['job.#'],
    onEvent: ({ messageId, event, body }) => {
      messages.push({
        id: String(messageId),
        event: event as BusMessage['event'],
        text: body.toString('utf8'),
      });
    },
  });
  const ids = () => messages.map(({ id }) => id);
  return {
    messages,
    ids,
    receivedAll: (expected, timeoutMs = 20_000) =>
      vi.waitFor(
        () => {
          const received = new Set(ids());
          const missing = [...expected].filter((id) => !received.has(id));
          if (missing.length > 0) throw new Error(`${missing.length} are missing, as ${missing[0]}`);
        },
        { timeout: timeoutMs, interval: 50 },
      ),
    [Symbol.asyncDispose]: subscription.close,
  };
}
