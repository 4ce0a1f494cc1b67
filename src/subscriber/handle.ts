// What becomes of one message: its handler with attempts and a time limit, the dedup store around it, and then the broker is told.

import type { ConversionEvent } from '../event/index.ts';
import type { Failure } from './dead-letter.ts';
import type { DedupStore } from './dedup.ts';
import type { MessageDelivery } from './delivery.ts';
import { UnavailableError } from './errors.ts';
import type { Incoming } from './incoming.ts';
import type { Rest } from './lanes.ts';
import { messageOf, type Tell } from './notices.ts';
import type { Settings, Topology } from './settings.ts';
import { type Attempted, withRetries } from './retry.ts';
import { type Limit, withTimeLimit } from './time-limit.ts';

/** What it needs to know of the subscriber. */
export type HandleSettings<Tx> = Pick<
  Settings<Tx>,
  'on' | 'dedup' | 'attempts' | 'backoff' | 'timeLimitMs'
> & { readonly topology: Pick<Topology, 'queue'> };

type Work = (attempt: number) => Promise<'done' | 'duplicate'>;

/** Never rejects. A message that was not settled comes again. */
export function createHandle<Tx>(options: {
  readonly settings: HandleSettings<Tx>;
  readonly tell: Tell;
  /** A stop has begun: no further attempts. */
  readonly stopping: AbortSignal;
  /** The stop does not wait for longer. */
  readonly abandoning: AbortSignal;
}): (incoming: Incoming, rest: Rest) => Promise<void> {
  const { settings, tell, stopping, abandoning } = options;
  const { on, dedup, topology } = settings;

  async function handle(incoming: Incoming, rest: Rest): Promise<void> {
    if (!incoming.isSettleable()) return;
    const work = workOf(incoming);
    if (work === undefined) return withoutHandler(incoming);
    const attempted = await withRetries({
      attempts: settings.attempts,
      backoff: settings.backoff,
      isWanted: () => incoming.isSettleable() && !stopping.aborted,
      hurry: stopping,
      rest,
      run: work,
      onRetry: (failed) => tell({ type: 'retry', ...incoming.name, ...failed }),
    });
    await settle(incoming, attempted);
  }

  const limited = <Result>(run: (limit: Limit) => Promise<Result>) =>
    withTimeLimit({ limitMs: settings.timeLimitMs, early: abandoning }, run);

  /** undefined if nobody handles it here. */
  function workOf(incoming: Incoming): Work | undefined {
    const { found } = incoming;
    switch (found.outcome) {
      case 'invalid': {
        const { invalid } = on;
        return invalid && unprotected(incoming, (delivery) => invalid({ reason: found.reason }, delivery));
      }
      case 'unknown': {
        const { unknown } = on;
        const { type, dataschema } = found;
        return unknown && unprotected(incoming, (delivery) => unknown({ type, dataschema }, delivery));
      }
      case 'event': {
        const handler = on[found.kind] as Handler<Tx> | undefined;
        return handler && protectedBy(dedup, incoming, found.event, handler);
      }
    }
  }

  async function withoutHandler(incoming: Incoming): Promise<void> {
    const { found } = incoming;
    switch (found.outcome) {
      case 'invalid':
        return deadLetter(incoming, { reason: 'invalid', attempts: 0, error: new Error(found.reason) });
      case 'unknown':
        return skip(incoming, 'unknown', `${found.type} ${found.dataschema}`.trim());
      case 'event':
        return skip(incoming, 'no_handler', found.event.type);
    }
  }

  function protectedBy(
    store: DedupStore<Tx> | undefined,
    incoming: Incoming,
    event: ConversionEvent,
    handler: Handler<Tx>,
  ): Work {
    return async (attempt) => {
      let isCalled = store === undefined;
      try {
        return await limited(async ({ signal, orGiveUp }) => {
          const effect = async (tx: Tx) => {
            isCalled = true;
            await orGiveUp(called(() => handler(event, { ...incoming.delivery, attempt, signal, tx })));
          };
          const context = { queue: topology.queue, signal, timeLimitMs: settings.timeLimitMs };
          if (store !== undefined) return await store.once(event.id, effect, context);
          await effect(undefined as Tx);
          return 'done';
        });
      } catch (error) {
        // A database that is away is no fault of the events: they must not end as dead letters.
        throw isCalled
          ? error
          : new UnavailableError(`the dedup store: ${messageOf(error)}`, { cause: error });
      }
    };
  }

  /** Of what is no event: nothing to deduplicate by. */
  function unprotected(incoming: Incoming, handler: (delivery: MessageDelivery) => unknown): Work {
    return (attempt) =>
      limited(async ({ signal, orGiveUp }) => {
        await orGiveUp(called(() => handler({ ...incoming.delivery, attempt, signal, tx: undefined })));
        return 'done' as const;
      });
  }

  async function settle(incoming: Incoming, attempted: Attempted<'done' | 'duplicate'>): Promise<void> {
    if (attempted.outcome === 'failed') return deadLetter(incoming, attempted);
    if (attempted.outcome === 'abandoned') return;
    const acknowledged = incoming.acknowledge();
    const { name } = incoming;
    if (attempted.result === 'duplicate') return tell({ type: 'duplicate', ...name });
    const durationMs = performance.now() - incoming.arrivedMs;
    tell({ type: 'handled', ...name, attempt: attempted.attempt, durationMs, acknowledged });
  }

  async function deadLetter(incoming: Incoming, { reason, attempts, error }: Failure): Promise<void> {
    if (await incoming.deadLetter({ reason, attempts, error }))
      tell({ type: 'dead_lettered', ...incoming.name, reason, error });
  }

  function skip(incoming: Incoming, reason: 'unknown' | 'no_handler', eventType: string): void {
    if (incoming.acknowledge()) tell({ type: 'skipped', ...incoming.name, reason, eventType });
  }

  return handle;
}

type Handler<Tx> = (event: ConversionEvent, delivery: MessageDelivery<Tx>) => unknown;

/** A handler may throw without being asynchronous. */
const called = async (handler: () => unknown): Promise<unknown> => await handler();
