// The options of a subscriber, as users write them.

import type { Certificates } from '../base/net/certificates.ts';
import type { Backoff } from './backoff.ts';
import type { DedupStore } from './dedup.ts';
import type { Handlers } from './delivery.ts';
import type { Notice } from './notices.ts';

export type SubscriberOptions<Tx = undefined> = {
  /**
   * `amqp://` or `amqps://`, with user, password and virtual host. Of a cluster, one for each node, with commas between them: each is
   * tried in its turn, in random order.
   */
  readonly url: string;
  /**
   * For `amqps://`, in PEM, as Node's `tls` names them: `ca` is trusted instead of the public authorities, `cert` and `key` are the
   * client's own. A function is called for each connection, so that renewed ones need no restart. Default: what Node trusts, and
   * no certificate.
   */
  readonly tls?: Certificates | (() => Certificates | Promise<Certificates>);
  /**
   * The queue's name, which is the subscriber's name: each queue gets every event that is bound to it, once. `{ temporary }` takes
   * the beginning of a name for a queue that is deleted when the subscriber stops, for watching and for tests: it has no
   * dead-letter queue, and drops the oldest beyond 100,000 events or 128 MiB.
   */
  readonly queue: string | { readonly temporary: string };
  /** What to do with the events, for each kind. */
  readonly on: Handlers<Tx>;
  /** Only events of these sources. Default: all. */
  readonly sources?: readonly string[];
  /** Routing keys to bind, instead of those that follow from `on` and `sources`: `job.#`, `job.completed.*`, `job.*.team-a`. */
  readonly bindings?: readonly string[];
  /** Default: `conversion.events`. */
  readonly exchange?: string;
  /**
   * - `job` (default): events of one job one after another, in the order in which they were accepted, those of other jobs at the
   *   same time. Of several processes with this queue one works, and the others are ready to take over.
   * - `queue`: all events one after another. Of several processes one works.
   * - `none`: several at once in any order, and all processes work.
   */
  readonly order?: 'job' | 'queue' | 'none';
  /** How many handlers run at once in this process, 1 to 1,000. Default: 10; with the order `queue` always 1. */
  readonly concurrency?: number;
  /** How many events the broker sends ahead, 1 to 2,000. Default: 5 for each of `concurrency`, at least 20. */
  readonly prefetch?: number;
  /**
   * How often a handler is called for an event before it is dead-lettered, 1 to 100. Default: 5. What ends with an
   * `UnavailableError` does not count, nor does a call that the dedup store made impossible.
   */
  readonly attempts?: number;
  /**
   * The wait between attempts, doubled each time, with a random part. Default: from 1,000 ms to 30,000 ms. Later events of the
   * job wait, too.
   */
  readonly backoff?: Backoff;
  /** How long a handler may take, in ms, up to 15 minutes. Then `delivery.signal` aborts. Default: 60,000. */
  readonly timeLimitMs?: number;
  /** How long a stop waits for handlers that run, in ms. Then `delivery.signal` aborts. Default: 20,000. */
  readonly stopLimitMs?: number;
  /**
   * Makes each event take effect once, although copies may come: `memoryDedup()` (default), `postgresDedup(…)`, or your own.
   * `false`: the handler gets every copy.
   */
  readonly dedup?: DedupStore<Tx> | false;
  /**
   * - `always` (default): the queue and its dead-letter queue are declared. One that exists in another form is an error.
   * - `missing`: a queue that exists is used as it is, a missing one is declared.
   * - `never`: the queue is used as it is, with its owner's bindings. The account needs no right but to read it.
   */
  readonly declare?: 'always' | 'missing' | 'never';
  /** Declares the exchange, too, instead of waiting until Tallyhook has declared it. Default: false. */
  readonly declareExchange?: boolean;
  /** Stops the subscriber, as `stop()` does. */
  readonly signal?: AbortSignal;
  /**
   * Hears of everything that happens, for logs and metrics. Must be quick, and not throw. Default: warnings and errors go to
   * standard error.
   */
  readonly onNotice?: (notice: Notice) => void;
};
