// What a handler gets: the event, and how it was delivered.

import type { ConversionCompleted, ConversionFailed, ConversionProgress } from '../event/index.ts';
import type { ToldFailure } from './dead-letter.ts';

/** How an event was delivered. `Tx` is what the dedup store lends the handler, such as a client of Postgres in a transaction. */
export type MessageDelivery<Tx = undefined> = {
  /** AMQP's message id. Of an event from Tallyhook it is the event's id. */
  readonly messageId: string | undefined;
  /** `job.completed.team-a`; for a copy that a replay sent to one queue, the queue's name. */
  readonly routingKey: string;
  readonly contentType: string | undefined;
  /** The broker delivered this message before, to this process or to another one. It may have been handled then. */
  readonly redelivered: boolean;
  /** 1 for the first call of the handler in this process, 2 for the first retry, … */
  readonly attempt: number;
  /** Set on copies that an operator asked for: the replay's id, and the name of the token that started it. */
  readonly replay: { readonly id: string; readonly by: string } | undefined;
  /** Set on what comes out of a dead-letter queue: why its subscriber put it there. */
  readonly failure: ToldFailure | undefined;
  /** The bytes as they came. */
  readonly body: Uint8Array;
  /**
   * Aborts when the handler's time is over, and when a stop cannot wait for longer. Pass it to `fetch` and the like: a handler
   * that goes on for 5 seconds after it counts as failed.
   */
  readonly signal: AbortSignal;
  /** From the dedup store. What the handler writes through it is committed together with the event's id. */
  readonly tx: Tx;
};

/** A CloudEvent that this version of the package does not know: of another type, or with a newer form of its data. */
export type UnknownEvent = { readonly type: string; readonly dataschema: string };

/** A message that is no event. `reason` names fields, and never quotes a value. */
export type InvalidEvent = { readonly reason: string };

/**
 * One function for each kind of event. What it returns is awaited and ignored. The event is acknowledged after that. If it throws
 * or rejects, it is called again after a while; a `RejectError` dead-letters the event at once.
 *
 * Events of a kind without a function are not bound, and acknowledged if they come all the same.
 */
export type Handlers<Tx = undefined> = {
  readonly completed?: (event: ConversionCompleted, delivery: MessageDelivery<Tx>) => unknown;
  readonly failed?: (event: ConversionFailed, delivery: MessageDelivery<Tx>) => unknown;
  readonly progress?: (event: ConversionProgress, delivery: MessageDelivery<Tx>) => unknown;
  /** Without it, such an event is acknowledged and told by a notice (`skipped`). It is not deduplicated. */
  readonly unknown?: (found: UnknownEvent, delivery: MessageDelivery) => unknown;
  /** Without it, such a message is dead-lettered and told by a notice. It is not deduplicated. */
  readonly invalid?: (found: InvalidEvent, delivery: MessageDelivery) => unknown;
};
