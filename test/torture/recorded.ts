// A run as it was recorded from outside: requests and answers, what a subscriber received, the ledger, the logs, and the
// faults. All times are on one clock, performance.now() of the harness.

import type { Notice } from './notices.ts';
import type { RecordedExit } from './replica.ts';
import type { SecretInForce } from './sources.ts';

/** One request of a sender. */
export type Attempt = {
  /** Sent as X-Request-Id, by which its row in the ledger is found. */
  readonly requestId: string;
  readonly notice: Notice;
  readonly replica: number;
  /** The secret that signed it, if it was signed as its source would sign it. */
  readonly secret: string | undefined;
  readonly startMs: number;
  endMs: number;
  /** Undefined if no whole answer came. */
  status: number | undefined;
  /** As a sender sees it: ECONNRESET and the like, or `time-out` after 10 s. */
  error: string | undefined;
  outcome: string | undefined;
  eventId: string | undefined;
  /** The answer's Retry-After. */
  retryAfter: string | undefined;
  /** When an answer came after the sender had given up. */
  lateAnswerMs: number | undefined;
};

/** The AMQP properties that subscribers are promised. */
export type Properties = Readonly<
  Record<'deliveryMode' | 'contentType' | 'type' | 'messageId' | 'appId', unknown>
>;

/** One message as it came to the subscriber. */
export type Message = {
  readonly atMs: number;
  readonly id: string;
  readonly routingKey: string;
  /** The broker had delivered it before: it is no copy of ours. */
  readonly redelivered: boolean;
  readonly properties: Properties;
  readonly text: string;
};

/** An event that the operator parked while it was still to be published. */
export type Parked = {
  readonly eventId: string;
  /** When that was answered. */
  readonly parkedMs: number;
  /** When the operator asked for it to be published after all; undefined if it was to be discarded. */
  settledMs: number | undefined;
  /** A discard was answered as done. */
  isDiscarded: boolean;
};

/** One strike of a fault, until it was healed. */
export type Injection = {
  readonly fault: string;
  /** The number of the episode to which it belongs. */
  readonly episode: number;
  readonly replicas: readonly number[];
  readonly silences: boolean;
  readonly unbinds: boolean;
  /** Events that were committed and not published yet when it struck, if it is a fault of the hand-off. */
  readonly unpublished?: number | undefined;
  /** Requests on new connections that got no answer when their replica stopped, if it is a fault that counts them. */
  readonly cutOff?: number | undefined;
  readonly startMs: number;
  /** When healing began: the fault's end. */
  readonly endMs: number;
  readonly healedMs: number;
};

/** One fault, or several together. Everything has recovered at `recoveredMs`; undefined if it took longer than the limit. */
export type Episode = {
  readonly number: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly recoveredMs: number | undefined;
  /** From the end until the outbox had no entry from before the end. */
  readonly drainMs: number | undefined;
};

export type LedgerEvent = {
  readonly id: string;
  readonly sequence: string;
  readonly late: boolean;
  /** As the published event must have it: UTC, cut to milliseconds. */
  readonly recordedAt: string;
  readonly recordedMs: number;
};
export type LedgerPublication = { readonly eventId: string; readonly result: string; readonly atMs: number };
export type LedgerDelivery = {
  readonly requestId: string | null;
  readonly outcome: string;
  readonly status: number;
  readonly jobId: string | null;
  readonly secretFingerprint: string | null;
  readonly bodySha256: string | null;
  readonly bodyBytes: number | null;
  readonly hasBody: boolean;
  /** Computed from the bytes of the body that is kept. */
  readonly keptSha256: string | null;
  readonly keptBytes: number | null;
};

export type Ledger = {
  readonly events: readonly LedgerEvent[];
  readonly publications: readonly LedgerPublication[];
  readonly deliveries: readonly LedgerDelivery[];
  /** Refused deliveries that got no row of their own. */
  readonly countedRefusals: number;
  readonly outboxLeft: number;
};

export type Recorded = {
  readonly seed: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly attempts: readonly Attempt[];
  readonly messages: readonly Message[];
  readonly ledger: Ledger;
  readonly parked: readonly Parked[];
  readonly injections: readonly Injection[];
  readonly episodes: readonly Episode[];
  readonly exits: readonly RecordedExit[];
  readonly secrets: readonly SecretInForce[];
  /** Where something planted was found: "an answer", "the bus", "the ledger". */
  readonly leaks: readonly string[];
  /** Lines of the replicas' logs that reveal a bug. */
  readonly alarms: readonly string[];
  /** Notices that were not acknowledged when the run ended. */
  readonly undelivered: readonly string[];
  /** From the end of sending to an empty outbox; undefined if it did not get empty in time. */
  readonly finalDrainMs: number | undefined;
};
