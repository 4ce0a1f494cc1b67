// Decides what becomes of a delivery: verified, understood, tallied, and answered in the words of the table in docs/senders.md.
// Nothing but an authentic body gets past `verifySignature` (guarantee 1), and a 2xx is given only after the commit
// (guarantee 2). Knows nothing of HTTP beyond status codes.

import { DELIVERY_ERRORS, OUTCOME_STATUS } from '../base/delivery-answers.ts';
import { UnavailableError } from '../base/errors.ts';
import { eventId } from '../event/index.ts';
import {
  type Delivery,
  type DeliveryOutcome,
  type DeliveryRecord,
  type RecordedDelivery,
  isRolledBack,
  type Understanding,
  understand,
} from '../ledger/index.ts';
import type { BatchWriter } from './batch-writer.ts';
import type { Deadlines } from './deadlines.ts';
import type { DeliveryObserver } from './observer.ts';
import type { RefusedDelivery } from './refusal-log.ts';
import { type KeyRing, type Verified, verifySignature } from './signature.ts';
import { UNKNOWN_SOURCE } from '../base/text/source-name.ts';
import { VALUES_REFUSED } from './write-batch.ts';

/** What the sender gets, and what the log line says beside it. */
export type Answer = {
  readonly httpStatus: number;
  readonly body:
    | { readonly outcome: DeliveryOutcome; readonly event_id: string | null }
    | { readonly error: string; readonly message: string };
  /** The signature matched, whatever became of the delivery then. */
  readonly isVerified: boolean;
  readonly eventId?: string;
  readonly late?: boolean;
  readonly reason?: string;
  /** Why a 503 was given, for the log alone. */
  readonly cause?: unknown;
} & (
  | { readonly outcome: RefusedDelivery['outcome']; readonly delivery: RefusedDelivery }
  | {
      /** `unavailable` is a 503: it says nothing of the delivery. */
      readonly outcome: Exclude<DeliveryOutcome, RefusedDelivery['outcome']> | 'unavailable';
      readonly delivery: Delivery;
    }
);

/** Why a request is refused before its signature is checked. */
export type Refusal = { readonly httpStatus: number; readonly error: string; readonly message: string };

type Received = {
  readonly body: Buffer;
  readonly signature: string | undefined;
  /** On the clock of `now`. */
  readonly deadlineMs: number;
};

export type Receiver = {
  /** For a body that arrived whole. Never rejects: what goes wrong is a 503. */
  readonly receive: (delivery: Delivery, received: Received) => Promise<Answer>;
  /** For a body that was counted and not kept, since it came without the form of a signature. */
  readonly rejectUnsigned: (delivery: Delivery, bodyBytes: number) => Answer;
  /** For a request that is refused unread or half read. */
  readonly refuse: (delivery: Delivery, refusal: Refusal) => Answer;
  /** For a request that there was no room for. It may be authentic, so it gets a 503. */
  readonly turnAway: (delivery: Delivery, cause: UnavailableError) => Answer;
};

export function createReceiver(options: {
  keyRing: () => KeyRing;
  writer: BatchWriter;
  deadlines: Deadlines;
  observer: Pick<DeliveryObserver, 'drifted' | 'overdue' | 'unconfirmed'>;
}): Receiver {
  const { keyRing, writer, deadlines, observer } = options;

  async function receive(delivery: Delivery, { body, signature, deadlineMs }: Received): Promise<Answer> {
    const verified = verifySignature(keyRing(), delivery.source, signature, body);
    if (verified === undefined) return rejectUnsigned(delivery, body.length);
    if (verified.isOverdue) observer.overdue(delivery.source);
    const understanding = understand(verified.body);
    const { drift } = understanding;
    const record = recordOf(delivery, verified, understanding);

    let isLate = false;
    const written = (recorded: RecordedDelivery) => {
      if (isLate) observer.unconfirmed(record);
      if (drift !== undefined) observer.drifted(record, drift, recorded.outcome);
      return answerRecorded(record, recorded);
    };
    const failed = (error: unknown) => {
      if (mayBeRecorded(error)) observer.unconfirmed(record);
      return answerUnavailable(record, error, { isVerified: true });
    };
    return new Promise((resolve) => {
      const answer = (given: Answer) => {
        deadlines.remove(deadline);
        resolve(given);
      };
      // Past the deadline the write goes on, and the sender's repeat finds what it wrote.
      const deadline = deadlines.add(deadlineMs, () => {
        isLate = true;
        resolve(failed(new UnavailableError('late', 'the write was not confirmed in time')));
      });
      writer.submit(record, deadlineMs).then(
        (recorded) => answer(written(recorded)),
        (error: unknown) => answer(failed(error)),
      );
    });
  }

  /** The same words for every cause: an answer must not tell which sources exist. */
  function rejectUnsigned(delivery: Delivery, bodyBytes: number): Answer {
    const source = knownSource(keyRing(), delivery.source);
    const { httpStatus, error } = DELIVERY_ERRORS.unauthorized;
    return {
      delivery: { ...delivery, source, bodyBytes, outcome: 'unauthorized', httpStatus },
      outcome: 'unauthorized',
      httpStatus,
      body: { error, message: 'missing or invalid signature' },
      isVerified: false,
    };
  }

  function refuse(delivery: Delivery, { httpStatus, error, message }: Refusal): Answer {
    const source = knownSource(keyRing(), delivery.source);
    return {
      delivery: { ...delivery, source, outcome: 'refused', httpStatus, reason: error },
      outcome: 'refused',
      httpStatus,
      body: { error, message },
      isVerified: false,
    };
  }

  function turnAway(delivery: Delivery, cause: UnavailableError): Answer {
    const source = knownSource(keyRing(), delivery.source);
    return answerUnavailable({ ...delivery, source }, cause, { isVerified: false });
  }

  return { receive, rejectUnsigned, refuse, turnAway };
}

/** The connection was lost, say, before Postgres confirmed the commit. */
const mayBeRecorded = (error: unknown): boolean =>
  error instanceof UnavailableError && error.code === 'ledger' && !isRolledBack(error.cause);

/** Strangers are recorded under one name, so that the names they claim cannot grow our tables and metrics. */
function knownSource(ring: KeyRing, source: string): string {
  return ring.names.includes(source) ? source : UNKNOWN_SOURCE;
}

function recordOf(
  delivery: Delivery,
  { body, fingerprint }: Verified,
  understood: Understanding,
): DeliveryRecord {
  const signed = {
    ...delivery,
    secretFingerprint: fingerprint,
    bodyBytes: body.length,
    body,
  };
  switch (understood.outcome) {
    case 'event': {
      const { outcome, event } = understood;
      const { jobId, status, progress } = event;
      return { ...signed, outcome, event, jobId, status, progress };
    }
    case 'quarantined': {
      const { outcome, jobId, status, reason } = understood;
      return { ...signed, outcome, httpStatus: OUTCOME_STATUS[outcome], jobId, status, reason };
    }
    case 'malformed': {
      const { outcome, reason } = understood;
      return { ...signed, outcome, httpStatus: DELIVERY_ERRORS[outcome].httpStatus, reason };
    }
  }
}

function answerRecorded(delivery: DeliveryRecord, { outcome, late }: RecordedDelivery): Answer {
  const isTallied = outcome === 'accepted' || outcome === 'duplicate' || outcome === 'conflict';
  if (delivery.outcome === 'event' && isTallied) {
    const id = eventId(delivery.source, delivery.event);
    const httpStatus = OUTCOME_STATUS[outcome];
    const body = { outcome, event_id: id };
    return { delivery, outcome, httpStatus, body, isVerified: true, eventId: id, late };
  }
  const reason = delivery.reason ?? VALUES_REFUSED;
  if (outcome === 'malformed') {
    const { httpStatus, error } = DELIVERY_ERRORS.malformed;
    return { delivery, outcome, httpStatus, body: { error, message: reason }, isVerified: true, reason };
  }
  const body = { outcome: 'quarantined', event_id: null } as const;
  const httpStatus = OUTCOME_STATUS.quarantined;
  return { delivery, outcome: 'quarantined', httpStatus, body, isVerified: true, reason };
}

function answerUnavailable(
  delivery: Delivery,
  cause: unknown,
  { isVerified }: { isVerified: boolean },
): Answer {
  const message = 'the delivery could not be recorded in time, please send it again';
  const { httpStatus, error } = DELIVERY_ERRORS.unavailable;
  const body = { error, message };
  return { delivery, outcome: 'unavailable', httpStatus, body, isVerified, cause };
}
