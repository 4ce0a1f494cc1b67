// The messages that were sent on one channel and have no result yet. Each gets one: the broker's answer, or a failure when the
// channel is lost or the answer is overdue. Does not know the connection.

import { createLinkedList, type Linked } from '../base/collections/linked-list.ts';
import { type Blame, type OutgoingMessage, type Publication, routeOf } from './publication.ts';

/** A message that waits for its result. */
export interface Sent extends Linked<Sent> {
  readonly messageId: string;
  readonly startedMs: number;
  readonly route: string;
  readonly isForQueue: boolean;
  /** Why it was returned. The confirm follows and settles it. */
  returned: string | undefined;
  readonly settled: (publication: Publication) => void;
}

export type SentMessages = {
  /** `settled` gets the result, once. It must not throw: the broker settles many messages at a time. */
  readonly add: (message: OutgoingMessage, settled: (publication: Publication) => void) => Sent;
  /** No queue received it. The broker says this before it confirms the message. */
  readonly markReturned: (messageId: string, detail: string) => void;
  readonly confirm: (sent: Sent) => void;
  readonly nack: (sent: Sent) => void;
  readonly fail: (sent: Sent, detail: string, blame: Blame) => void;
  /** The channel is lost. `code` is AMQP's reply code if the broker closed it. */
  readonly failAll: (detail: string, code?: unknown) => void;
  /** Those that wait for the broker's answer for longer than this. */
  readonly overdue: (deadlineMs: number) => Sent[];
  /** Of those, the ones that the broker has passed over: it has answered for one that was sent later. */
  readonly passedOver: (deadlineMs: number) => Sent[];
  /** Whether the broker answered for any message within this time. */
  readonly isAnswered: (withinMs: number) => boolean;
  /** Whether the broker has answered for any message at all. */
  readonly hasAnswered: () => boolean;
  /** Whether the last answer for some route was a nack. Every message may be nacked because of the channel: see publisher.ts. */
  readonly isNacked: () => boolean;
  /** All get their full time again: the broker was blocked. */
  readonly restartDeadlines: () => void;
  readonly size: () => number;
};

/** The broker closed the channel because of one message (its size, its frames), not because of the connection. */
const CONTENT_ERRORS: ReadonlySet<unknown> = new Set([311, 406, 501, 502, 540, 541]);

/** Our user may not publish to a queue directly, to the exchange, or with a routing key. */
const ACCESS_REFUSED = 403;
/** RabbitMQ's words if the account has topic permissions that leave a routing key out. */
const REFUSED_KEY = /access to topic '(.*)' in exchange/s;

/** `now`: monotonic milliseconds. */
export function createSentMessages(now: () => number): SentMessages {
  const waiting = createLinkedList<Sent>();
  let restartedMs = now();
  let answeredMs: number | undefined;
  let nackedRoute: string | undefined; // of the last nack, until a message of this route is confirmed
  let answeredStartedMs = 0; // of the message that was sent last of those that the broker has answered for

  function settle(sent: Sent, publication: Publication): void {
    if (waiting.delete(sent)) sent.settled(publication);
  }

  /** The broker answered. Returns how long that took. */
  function noteAnswer(sent: Sent): number {
    answeredMs = now();
    if (sent.startedMs > answeredStartedMs) answeredStartedMs = sent.startedMs;
    return answeredMs - sent.startedMs;
  }

  function fail(sent: Sent, detail: string, blame: Blame): void {
    settle(sent, { result: 'failed', detail, blame, durationMs: now() - sent.startedMs });
  }

  const overdue = (deadlineMs: number): Sent[] =>
    [...waiting].filter(({ startedMs }) => now() - Math.max(startedMs, restartedMs) > deadlineMs);

  return {
    add: (message, settled) => {
      const sent: Sent = {
        messageId: message.messageId,
        startedMs: now(),
        route: routeOf(message),
        isForQueue: typeof message.queue === 'string',
        returned: undefined,
        settled,
        previous: undefined,
        next: undefined,
      };
      waiting.add(sent);
      return sent;
    },

    markReturned: (messageId, detail) => {
      // The broker returns messages in the order in which they were sent, so this one is among the first.
      for (const sent of waiting) {
        if (sent.messageId !== messageId || sent.returned !== undefined) continue;
        sent.returned = detail;
        return;
      }
    },

    confirm: (sent) => {
      const durationMs = noteAnswer(sent);
      if (sent.route === nackedRoute) nackedRoute = undefined;
      const { returned } = sent;
      if (returned === undefined) settle(sent, { result: 'confirmed', durationMs });
      else settle(sent, { result: 'returned', detail: returned, blame: 'event', durationMs });
    },

    nack: (sent) => {
      const durationMs = noteAnswer(sent);
      nackedRoute = sent.route;
      settle(sent, { result: 'nacked', detail: 'nacked by the broker', blame: 'event', durationMs });
    },

    fail,

    failAll: (detail, code) => {
      for (const sent of waiting) fail(sent, detail, blameOf({ message: detail, code }, sent));
    },

    overdue,

    passedOver: (deadlineMs) => overdue(deadlineMs).filter(({ startedMs }) => startedMs < answeredStartedMs),

    isAnswered: (withinMs) => now() - Math.max(answeredMs ?? 0, restartedMs) < withinMs,

    hasAnswered: () => answeredMs !== undefined,

    isNacked: () => nackedRoute !== undefined,

    restartDeadlines: () => {
      restartedMs = now();
    },

    size: () => waiting.size(),
  };
}

/** The routing key that our account may not use, if the channel was closed for this. */
export function refusedRoute(
  reason: { readonly message: string; readonly code?: unknown } | undefined,
): string | undefined {
  return reason?.code === ACCESS_REFUSED ? REFUSED_KEY.exec(reason.message)?.[1] : undefined;
}

/** Of a message that was in flight when the channel closed with this reply code, for the reason in `message`. */
function blameOf(reason: { message: string; code: unknown }, { isForQueue, route }: Sent): Blame {
  if (CONTENT_ERRORS.has(reason.code)) return 'unknown';
  if (isForQueue && reason.code === ACCESS_REFUSED) return 'queue';
  return refusedRoute(reason) === route ? 'route' : 'broker';
}
