// A subscriber: consumes a queue of events, calls one function for each kind, and acknowledges an event after its function. It
// keeps a job's order, tries again, dead-letters, reconnects, and stops without losing or repeating an event.

import { createConsumer, type Standing } from './consumer.ts';
import { createHandle } from './handle.ts';
import type { Incoming } from './incoming.ts';
import { createLanes } from './lanes.ts';
import { createTeller } from './notices.ts';
import type { SubscriberOptions } from './options.ts';
import { orAfter } from './or-after.ts';
import { settle } from './settings.ts';
import { SETTLE_MS } from './time-limit.ts';

export type SubscriberState = {
  readonly connected: boolean;
  /** Whether it gets the queue's events, or waits while another process does. */
  readonly standing: Standing;
  /** Handlers that run now. */
  readonly running: number;
  /** Events that have come and wait for their turn. */
  readonly waiting: number;
};

export type Subscriber = AsyncDisposable & {
  readonly queue: string;
  readonly state: () => SubscriberState;
  /**
   * Begins no further event, waits for the handlers that run and acknowledges their events, returns the others to the queue, and
   * disconnects. After `stopLimitMs` it aborts the signals of the handlers. Never rejects. Safe to call twice.
   */
  readonly stop: () => Promise<void>;
  /** Resolves when it has stopped, by `stop` or by the signal. */
  readonly stopped: Promise<void>;
};

/**
 * Resolves when the queue is consumed for the first time. While the broker cannot be reached, or the exchange does not exist, it
 * tries again, for ever; `onNotice` hears of it.
 *
 * @throws TypeError if an option is not valid
 * @throws SubscriberError if the broker refuses the account, or the queue exists in another form. Later such errors are notices.
 * @throws the signal's reason, if it aborts before the first connection
 */
export async function createSubscriber<Tx = undefined>(options: SubscriberOptions<Tx>): Promise<Subscriber> {
  const settings = settle(options);
  const { signal } = settings;
  const tell = createTeller(settings.onNotice);
  const [stopping, abandoning] = [new AbortController(), new AbortController()];
  const lanes = createLanes<Incoming>({
    concurrency: settings.concurrency,
    run: createHandle({ settings, tell, stopping: stopping.signal, abandoning: abandoning.signal }),
  });
  const consumer = createConsumer({
    settings,
    tell,
    stopping: stopping.signal,
    onIncoming: (incoming) => lanes.push(incoming.lane, incoming),
    // What runs goes on: its copy waits in the same lane.
    onLost: () => lanes.dropWaiting((incoming) => !incoming.isSettleable()),
  });
  const ended = Promise.withResolvers<void>();
  let isStopping = false;

  async function stop(): Promise<void> {
    tell({ type: 'stopping' });
    stopping.abort();
    const returned = lanes.close();
    await orAfter(lanes.idle(), settings.stopLimitMs);
    const unfinished = lanes.counts().running;
    abandoning.abort(new Error('the subscriber stops'));
    if (unfinished > 0) await orAfter(lanes.idle(), SETTLE_MS);
    await consumer.close();
    signal?.removeEventListener('abort', onAbort);
    tell({ type: 'stopped', returned, unfinished });
    ended.resolve();
  }

  function stopOnce(): Promise<void> {
    if (!isStopping) void stop();
    isStopping = true;
    return ended.promise;
  }

  const onAbort = () => void stopOnce();
  signal?.addEventListener('abort', onAbort, { once: true });
  if (signal?.aborted) onAbort();
  try {
    await consumer.started;
  } catch (error) {
    await (signal?.aborted ? stopOnce() : consumer.close());
    throw signal?.aborted ? signal.reason : error;
  }
  return {
    queue: settings.topology.queue,
    state: () => ({
      connected: consumer.isConnected(),
      standing: consumer.standing(),
      ...lanes.counts(),
    }),
    stop: stopOnce,
    stopped: ended.promise,
    [Symbol.asyncDispose]: stopOnce,
  };
}
