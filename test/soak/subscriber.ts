// The subscriber of a soak, a thread of its own with a durable queue. It marks the events that it received in a shared set
// and counts copies; it keeps no event.

import { parentPort, workerData } from 'node:worker_threads';
import { numberOf } from '../../bench/load/notifications.ts';
import { createSubscriber, type MessageDelivery } from '../../src/subscriber/index.ts';
import { openBits } from './bits.ts';
import type { SubscriberSample } from './record.ts';

export type SubscriberOptions = {
  readonly amqpUrl: string;
  readonly exchange: string;
  readonly queue: string;
  readonly run: string;
  /** The set of received events, by number. */
  readonly received: SharedArrayBuffer;
};

/** `report` is answered with a SubscriberSample. */
export type SubscriberCommand = 'report' | 'close';

const { amqpUrl, exchange, queue, run, received } = workerData as SubscriberOptions;
const marks = openBits(received);
const tally = { received: 0, distinct: 0, unexpected: 0 };

const count = (_: unknown, { messageId }: MessageDelivery) => {
  tally.received += 1;
  const number = numberOf(run, messageId ?? '');
  if (number === undefined || number >= marks.words.length * 32) tally.unexpected += 1;
  else if (marks.mark(number)) tally.distinct += 1;
};
const subscriber = await createSubscriber({
  url: amqpUrl,
  exchange,
  declareExchange: true,
  queue,
  bindings: ['job.#'],
  order: 'none',
  prefetch: 100,
  dedup: false, // copies are counted
  on: { completed: count, failed: count, progress: count },
});

const actions: Record<SubscriberCommand, () => void> = {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
  report: () => parentPort?.postMessage({ ...tally } satisfies SubscriberSample),
  close: () => void subscriber.stop().finally(() => parentPort?.close()),
};
parentPort?.on('message', (command: SubscriberCommand) => actions[command]());
