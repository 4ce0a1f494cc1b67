// Decides what becomes of a delivery whose body has been read: verified, understood, tallied, and answered
// in the words of the design's table. Nothing but an authentic body gets past `verifySignature` (guarantee
// 1), and a 2xx is given only after the commit (guarantee 2). Knows nothing of HTTP beyond status codes.

import { hash } from 'node:crypto';
import { UnavailableError } from '../errors.ts';
import {
  type Drift,
  type DriftLog,
  type DeliveryRecord,
  type RecordedDelivery,
  type DeliveryOutcome,
  eventId,
  type Understanding,
  understand,
} from '../ledger/index.ts';
import type { BatchWriter } from './batch-writer.ts';
import type { RefusalLog, RefusalTrace } from './refusal-log.ts';
import { type KeyRing, type Verified, verifySignature } from './signature.ts';
import { UNKNOWN_SOURCE } from './sources.ts';

/** What is known of a request before its body. */
export type Arrival = {
  readonly id: string;
  /** The source that the path claims; it need not exist. */
  readonly source: string;
  readonly path: string;
  readonly signature: string | undefined;
  /** Who sent it: the peer, or who a trusted proxy says that it was. */
  readonly remoteAddress: string | null;
  /** The other end of the connection, where that is another; null where it is the sender. */
  readonly peerAddress: string | null;
  readonly headers: string;
  /** On the clock of `now`. */
  readonly deadlineMs: number;
};

/** The answer, and what the log line says of it beside. */
export type Verdict = {
  readonly httpStatus: number;
  /** undefined for an answer that says nothing of the delivery: 503. */
  readonly outcome: DeliveryOutcome | undefined;
  readonly answer: Answer;
  readonly source: string;
  /** The signature matched, whatever became of the delivery then. */
  readonly isVerified: boolean;
  readonly eventId?: string;
  readonly jobId?: string;
  readonly late?: boolean;
  readonly fingerprint?: string;
  readonly reason?: string;
  /** Of a refusal: whether it has a row, and a line, of its own. */
  readonly trace?: RefusalTrace;
  /** Why a 503 was given, for the log alone. */
  readonly cause?: unknown;
};

export type Answer =
  | { readonly outcome: DeliveryOutcome; readonly event_id: string | null }
  | { readonly error: string; readonly message: string };

/** Why a request was refused before its body could be judged. */
export type Refusal = { readonly httpStatus: number; readonly error: string; readonly message: string };

export type Receiver = {
  /** Never rejects: what goes wrong is a 503. */
  readonly receive: (arrival: Arrival, body: Buffer) => Promise<Verdict>;
  /** For a body that was counted and not kept, since no signature came with it that could match. Leaves a trace. */
  readonly rejectUnsigned: (arrival: Arrival, bodyBytes: number) => Verdict;
  /** For a request that there was no room for. It may be authentic, so nothing is said of it. */
  readonly turnAway: (arrival: Arrival, cause: UnavailableError) => Verdict;
  /** For a request that is turned away unread or half read. Leaves a trace. */
  readonly refuse: (arrival: Arrival, refusal: Refusal) => Verdict;
};

export function createReceiver(options: {
  keyRing: () => KeyRing;
  writer: BatchWriter;
  refusals: RefusalLog;
  /** Told of what an event or a status had that we do not know, once the delivery and its body are in the ledger. */
  noticeDrift: DriftLog['notice'];
  now: () => number;
}): Receiver {
  const { keyRing, writer, refusals, noticeDrift, now } = options;

  async function receive(arrival: Arrival, body: Buffer): Promise<Verdict> {
    const ring = keyRing();
    const verified = verifySignature(ring, arrival.source, arrival.signature, body);
    if (verified === undefined) return rejectUnsigned(arrival, body.length);
    const understanding = understand(verified.body);
    const record = recordOf(arrival, verified, understanding);
    const write = writer.submit(record, arrival.deadlineMs);
    if (understanding.drift !== undefined) void noticeOnce(record, understanding.drift, write);
    try {
      return toVerdict(record, await withinDeadline(write, arrival.deadlineMs));
    } catch (error) {
      return { ...unavailable(arrival.source, error), isVerified: true };
    }
  }

  function rejectUnsigned(arrival: Arrival, bodyBytes: number): Verdict {
    const source = knownSource(keyRing(), arrival.source);
    const trace = refusals.trace({
      ...unsigned(arrival, source),
      verdict: 'unauthorized',
      httpStatus: 401,
      bodyBytes,
    });
    // The same words for every cause: an answer must not tell which sources exist.
    return {
      ...refusal(source, 'unauthorized', 401, 'unauthorized', 'missing or invalid signature'),
      trace,
    };
  }

  function turnAway(arrival: Arrival, cause: UnavailableError): Verdict {
    return unavailable(knownSource(keyRing(), arrival.source), cause);
  }

  function refuse(arrival: Arrival, { httpStatus, error, message }: Refusal): Verdict {
    const source = knownSource(keyRing(), arrival.source);
    const trace = refusals.trace({
      ...unsigned(arrival, source),
      verdict: 'refused',
      httpStatus,
      reason: error,
    });
    return { ...refusal(source, 'refused', httpStatus, error, message), trace };
  }

  /** Of copies nothing is noticed: their bodies are not kept. Never rejects. */
  async function noticeOnce(
    { source, id }: DeliveryRecord,
    drift: readonly Drift[],
    write: Promise<RecordedDelivery>,
  ): Promise<void> {
    const recorded = await write.catch(() => undefined); // whoever answers the delivery says why
    if (recorded?.outcome === 'accepted' || recorded?.outcome === 'quarantined')
      noticeDrift(source, id, drift);
  }

  /** The answer does not wait longer than it may; the write goes on, and is what the repeat will find. */
  async function withinDeadline(
    write: Promise<RecordedDelivery>,
    deadlineMs: number,
  ): Promise<RecordedDelivery> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new UnavailableError('late', 'the write was not confirmed in time')),
      Math.max(0, deadlineMs - now()),
    );
    try {
      return await Promise.race([write, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  return { receive, rejectUnsigned, turnAway, refuse };
}

/** Strangers are recorded under one name, so that what they claim cannot grow our tables and metrics. */
function knownSource(ring: KeyRing, source: string): string {
  return ring.names.includes(source) ? source : UNKNOWN_SOURCE;
}

function unsigned(arrival: Arrival, source: string) {
  return {
    id: arrival.id,
    source,
    path: arrival.path,
    remoteAddress: arrival.remoteAddress,
    peerAddress: arrival.peerAddress,
    headers: arrival.headers,
    secretFingerprint: null,
    jobId: null,
    status: null,
    progress: null,
    reason: null,
    bodyBytes: null,
    bodySha256: null,
    body: null,
  };
}

function recordOf(
  arrival: Arrival,
  { body, fingerprint }: Verified,
  understood: Understanding,
): DeliveryRecord {
  const signed = {
    ...unsigned(arrival, arrival.source),
    secretFingerprint: fingerprint,
    bodyBytes: body.length,
    bodySha256: hash('sha256', body, 'buffer'),
    body,
  };
  switch (understood.outcome) {
    case 'event': {
      const { event } = understood;
      return {
        ...signed,
        verdict: 'event',
        event,
        jobId: event.jobId,
        status: event.status,
        progress: event.progress,
      };
    }
    case 'quarantined': {
      const { jobId, status, reason } = understood;
      return { ...signed, verdict: 'quarantined', httpStatus: 202, jobId, status, reason };
    }
    case 'malformed':
      return { ...signed, verdict: 'malformed', httpStatus: 400, reason: understood.reason };
  }
}

function toVerdict(record: DeliveryRecord, { outcome, late }: RecordedDelivery): Verdict {
  const { source } = record;
  const fingerprint = record.secretFingerprint ?? '';
  if (record.verdict !== 'event' || outcome === 'quarantined') {
    const reason = record.reason ?? 'the ledger refused its values';
    if (outcome === 'malformed')
      return { ...refusal(source, outcome, 400, 'malformed', reason), isVerified: true, fingerprint, reason };
    const answer = { outcome, event_id: null };
    const jobId = record.jobId ?? '';
    return { httpStatus: 202, outcome, answer, source, isVerified: true, fingerprint, reason, jobId };
  }
  const id = eventId(source, record.event);
  return {
    httpStatus: outcome === 'accepted' ? 202 : 200,
    outcome,
    answer: { outcome, event_id: id },
    source,
    isVerified: true,
    eventId: id,
    jobId: record.event.jobId,
    late,
    fingerprint,
  };
}

function unavailable(source: string, cause: unknown): Verdict {
  const message = 'the delivery could not be recorded in time, please send it again';
  return { ...refusal(source, undefined, 503, 'unavailable', message), cause };
}

function refusal(
  source: string,
  outcome: DeliveryOutcome | undefined,
  httpStatus: number,
  error: string,
  message: string,
): Verdict {
  return { httpStatus, outcome, answer: { error, message }, source, isVerified: false };
}
