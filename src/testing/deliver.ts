// Handlers without a broker: what the subscriber would do with one message, by the subscriber's own code.

import { z } from 'zod';
import type { ConversionEvent } from '../event/index.ts';
import { createHandle } from '../subscriber/handle.ts';
import { faultsOf, handlersForm } from '../subscriber/handlers-form.ts';
import { read } from '../subscriber/incoming.ts';
import type { Handlers, MessageDelivery } from '../subscriber/index.ts';
import type { Tell } from '../subscriber/notices.ts';
import { toMessage } from './sample-delivery.ts';

export type DeliverOptions = {
  /** Whether the broker delivered it before (false). */
  readonly redelivered?: boolean | undefined;
  /** Makes it a copy that an operator asked for. */
  readonly replay?: MessageDelivery['replay'];
  /** How long the handler may take (60,000 ms). Then its signal aborts, as the subscriber's does. */
  readonly timeLimitMs?: number | undefined;
};

/** What the subscriber does with the message. `error` is what the handler threw. */
export type Delivered =
  /** Acknowledged: its function has ended. */
  | { readonly outcome: 'handled' }
  /** Dead-lettered at once: by a `RejectError`, or since it is no event and there is no function `invalid`. */
  | { readonly outcome: 'rejected'; readonly reason: 'rejected' | 'invalid'; readonly error: unknown }
  /** Tried again, and dead-lettered after the last attempt. */
  | { readonly outcome: 'failed'; readonly error: unknown }
  /** Tried again for as long as it takes: by an `UnavailableError`. */
  | { readonly outcome: 'unavailable'; readonly error: unknown }
  /** Acknowledged without a function: there is none for this kind, or none for what is `unknown`. */
  | { readonly outcome: 'skipped'; readonly reason: 'no_handler' | 'unknown' };

/**
 * Gives a message to the function that the subscriber would call, once, and says what the subscriber would do then. Each call is
 * the first one of its event: copies are not remembered.
 * @param handlers `on` of `createSubscriber`
 * @param event from `sampleEvent`; or anything else that a queue may hold, as an object, text or bytes
 * @param options `tx` is what your dedup store lends: a client, or what stands in for one
 * @throws TypeError for a handler or an option that is misspelt or no such thing, as `createSubscriber` does
 */
export async function deliver<Tx>(
  handlers: Handlers<Tx>,
  event: ConversionEvent | object | string | Uint8Array,
  options: DeliverOptions & { readonly tx: Tx },
): Promise<Delivered>;
export async function deliver(
  handlers: Handlers,
  event: ConversionEvent | object | string | Uint8Array,
  options?: DeliverOptions,
): Promise<Delivered>;
export async function deliver<Tx>(
  handlers: Handlers<Tx>,
  event: object | string | Uint8Array,
  options: DeliverOptions & { readonly tx?: Tx } = {},
): Promise<Delivered> {
  const checked = callForm.safeParse({ on: handlers, options });
  if (!checked.success) throw new TypeError(`deliver was called with a fault: ${faultsOf(checked.error)}`);
  const { tx, timeLimitMs = 60_000, redelivered, replay } = options;
  const stopping = new AbortController();
  let delivered: Delivered | undefined;
  const handle = createHandle<Tx>({
    settings: {
      on: handlers,
      dedup: { once: async (_, effect) => effect(tx as Tx).then(() => 'done') },
      attempts: 1,
      backoff: { firstMs: 1, maxMs: 1 },
      timeLimitMs,
      topology: { queue: 'test' },
    },
    tell: (notice) => {
      delivered = toDelivered(notice);
      stopping.abort(); // what is tried for as long as it takes, is tried once
    },
    stopping: stopping.signal,
    abandoning: new AbortController().signal,
  });
  const incoming = {
    ...read(toMessage(event, { redelivered, ...(replay && { replay }) }), 'job'),
    isSettleable: () => true,
    acknowledge: () => true,
    deadLetter: async () => true,
  };
  await handle(incoming, async (wait) => void (await wait));
  if (delivered === undefined) throw new Error('the subscriber would have said nothing');
  return delivered;
}

/** Strict: a name that is none of these is a mistake in writing. */
const callForm = z.object({
  on: handlersForm,
  options: z.strictObject({
    tx: z.unknown().optional(),
    redelivered: z.boolean().optional(),
    replay: z.strictObject({ id: z.string(), by: z.string() }).optional(),
    timeLimitMs: z.number().positive().optional(),
  }),
});

function toDelivered(notice: Parameters<Tell>[0]): Delivered | undefined {
  if (notice.type === 'handled') return { outcome: 'handled' };
  if (notice.type === 'skipped') return { outcome: 'skipped', reason: notice.reason };
  // It is the only attempt: another one is made only of what was away.
  if (notice.type === 'retry') return { outcome: 'unavailable', error: notice.error };
  if (notice.type !== 'dead_lettered') return undefined;
  const { reason, error } = notice;
  return reason === 'attempts' ? { outcome: 'failed', error } : { outcome: 'rejected', reason, error };
}
