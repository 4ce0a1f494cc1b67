// The messages that were sent on one channel and have no result yet. Each gets one: the broker's answer, or a failure when the
// channel is lost or the answer is overdue. Does not know the connection.

import { createLinkedList, type Linked } from '../linked-list.ts';
import type { Blame, OutgoingMessage, Publication } from './publication.ts';

/** A message that waits for its result. */
export interface Sent extends Linked<Sent> {
  readonly messageId: string;
  readonly startedMs: number;
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
  /** Whether the broker answered for any message within this time. */
  readonly isAnswered: (withinMs: number) => boolean;
  /** Whether the broker has answered for any message at all. */
  readonly hasAnswered: () => boolean;
  /** All get their full time again: the broker was blocked. */
  readonly restartDeadlines: () => void;
};

/** The broker closed the channel because of one message (its size, its frames), not because of the connection. */
const CONTENT_ERRORS: ReadonlySet<unknown> = new Set([311, 406, 501, 502, 540, 541]);

/** Our user may lack the permission to publish to a queue directly: then the cause is a message for a queue. */
const ACCESS_REFUSED = 403;

/** `now`: monotonic milliseconds. */
export function createSentMessages(now: () => number): SentMessages {
  const waiting = createLinkedList<Sent>();
  let restartedMs = now();
  let answeredMs: number | undefined;

  function settle(sent: Sent, publication: Publication): void {
    if (waiting.delete(sent)) sent.settled(publication);
  }

  /** The broker answered. Returns how long that took. */
  function noteAnswer(sent: Sent): number {
    answeredMs = now();
    return answeredMs - sent.startedMs;
  }

  function fail(sent: Sent, detail: string, blame: Blame): void {
    settle(sent, { result: 'failed', detail, blame, durationMs: now() - sent.startedMs });
  }

  return {
    add: ({ messageId, queue }, settled) => {
      const sent: Sent = {
        messageId,
        startedMs: now(),
        isForQueue: typeof queue === 'string',
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
      const { returned } = sent;
      if (returned === undefined) settle(sent, { result: 'confirmed', durationMs });
      else settle(sent, { result: 'returned', detail: returned, blame: 'event', durationMs });
    },

    nack: (sent) => {
      const durationMs = noteAnswer(sent);
      settle(sent, { result: 'nacked', detail: 'nacked by the broker', blame: 'event', durationMs });
    },

    fail,

    failAll: (detail, code) => {
      for (const sent of waiting) fail(sent, detail, blameOf(code, sent));
    },

    overdue: (deadlineMs) =>
      [...waiting].filter(({ startedMs }) => now() - Math.max(startedMs, restartedMs) > deadlineMs),

    isAnswered: (withinMs) => now() - Math.max(answeredMs ?? 0, restartedMs) < withinMs,

    hasAnswered: () => answeredMs !== undefined,

    restartDeadlines: () => {
      restartedMs = now();
    },
  };
}

/** Of a message that was in flight when the channel closed with this reply code. */
function blameOf(code: unknown, { isForQueue }: Sent): Blame {
  const isForContent = CONTENT_ERRORS.has(code) || (code === ACCESS_REFUSED && isForQueue);
  return isForContent ? 'unknown' : 'broker';
}
