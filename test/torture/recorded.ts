// A run as it was recorded from outside: what was sent and answered, what a subscriber received, what the ledger and
// the logs hold, which faults struck. Plain facts on one clock (performance.now() of the harness) for the checker.

import type { Notice } from './history.ts';
import type { RecordedExit } from './replica.ts';
import type { SecretInForce } from './sources.ts';

/** One request of a sender. */
export type Attempt = {
  /** As it stood in X-Request-Id, by which the audit row is found. */
  readonly requestId: string;
  readonly notice: Notice;
  readonly replica: number;
  /** What it was signed with, where it was signed as its source would. */
  readonly secret: string | undefined;
  readonly startMs: number;
  endMs: number;
  /** Undefined when no whole answer came. */
  status: number | undefined;
  /** As a sender sees it: ECONNRESET and the like, or `time-out` after 10 s. */
  error: string | undefined;
  outcome: string | undefined;
  eventId: string | undefined;
  /** The answer's Retry-After. */
  retryAfter: string | undefined;
  /** An answer that came when the sender had given up on it. */
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
  /** The broker had handed it out before: no copy of ours. */
  readonly redelivered: boolean;
  readonly properties: Properties;
  readonly text: string;
};

/** What one fault did, from its strike to the end of its healing. */
export type Wound = {
  readonly fault: string;
  /** Of those that struck together. */
  readonly episode: number;
  readonly replicas: readonly number[];
  readonly silences: boolean;
  readonly unbinds: boolean;
  readonly startMs: number;
  /** When healing began: the fault's end. */
  readonly endMs: number;
  readonly healedMs: number;
};

/** One fault, or several together. All is well again at `recoveredMs`; undefined if it was not within the limit. */
export type Episode = {
  readonly number: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly recoveredMs: number | undefined;
  /** How long after the end it took until the outbox held nothing from before the end. */
  readonly drainMs: number | undefined;
};

export type LedgerEvent = {
  readonly id: string;
  readonly sequence: string;
  readonly late: boolean;
  /** As the envelope has to say it: UTC, cut to milliseconds. */
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
  /** Of the body that is kept, computed from its bytes. */
  readonly keptSha256: string | null;
  readonly keptBytes: number | null;
};

export type Ledger = {
  readonly events: readonly LedgerEvent[];
  readonly publications: readonly LedgerPublication[];
  readonly deliveries: readonly LedgerDelivery[];
  /** Refusals that got no row of their own. */
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
  readonly wounds: readonly Wound[];
  readonly episodes: readonly Episode[];
  readonly exits: readonly RecordedExit[];
  readonly secrets: readonly SecretInForce[];
  /** Where something planted was found: "answer", "log of replica 0", "bus", "ledger". */
  readonly leaks: readonly string[];
  /** Lines of the replicas' logs that tell of a bug. */
  readonly alarms: readonly string[];
  /** Notices whose sender gave up at the end of the run. */
  readonly undelivered: readonly string[];
  /** From the last fault's end to the empty outbox; undefined if that never came. */
  readonly finalDrainMs: number | undefined;
};
