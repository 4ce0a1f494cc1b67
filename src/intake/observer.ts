// Reports what became of each delivery, once it is answered: to the metrics, the statistics in the ledger, the trace of refusals,
// and the log, where each delivery has one wide line. A flood of refusals or of 503s gets the first lines and then counts.
// Why a signature failed is found out only after the answer has left: no cause makes an answer slower.

import type { IncomingHttpHeaders } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from 'pino';
import { describeError, UnavailableError } from '../base/errors.ts';
import { createLimitedLines } from '../http/index.ts';
import { type Counts, type Delivery, type Drift, type DeliveryOutcome, failureOf } from '../ledger/index.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Answer } from './receiver.ts';
import { causeInHeaders, SIGNATURE_HEADER } from '../base/signing/signature-cause.ts';
import type { RefusalLog, RefusalTrace, RefusedDelivery } from './refusal-log.ts';
import type { Trial } from './signature-trial.ts';

/** What is known of the request beside its delivery. */
export type Asked = {
  /** With the body, they tell why a signature failed. */
  readonly headers: IncomingHttpHeaders;
  /** Undefined if it was not kept. */
  readonly body: Buffer | undefined;
  /** The sender had ended the connection before its answer. */
  readonly hasLeft: boolean;
};

export type DeliveryObserver = {
  /** Returns at once. */
  readonly answered: (answer: Answer, elapsedMs: number, asked: Asked) => void;
  /** For an authentic delivery with fields or a status that we do not know. Its answer may have been given already. */
  readonly drifted: (delivery: Delivery, drift: readonly Drift[], outcome: DeliveryOutcome) => void;
  /** For a delivery that was signed by a secret after its time. */
  readonly overdue: (source: string) => void;
  /** For a delivery whose sender got 503, and that is recorded all the same, or may be. */
  readonly unconfirmed: (delivery: Delivery) => void;
  /** Writes what is left of the log and the traces, and stops. */
  readonly close: () => Promise<void>;
};

export function createDeliveryObserver(options: {
  metrics: Pick<Metrics, 'deliveries' | 'answerSeconds' | 'overdueSecrets'>;
  counts: Counts;
  refusals: RefusalLog;
  trial: Trial;
  log: Logger;
}): DeliveryObserver {
  const { metrics, counts, refusals, trial, log } = options;
  const unavailable = createUnavailableLines({ log });
  // The lines have no object of a request. Redaction, which the log does elsewhere, would be half of their cost.
  const lines = log.child({}, { redact: [] });

  const explaining = new Set<Promise<void>>();

  function answered(answer: Answer, elapsedMs: number, asked: Asked): void {
    const { delivery, outcome } = answer;
    const { source, secretFingerprint: fingerprint } = delivery;
    metrics.deliveries.inc({ source, outcome });
    metrics.answerSeconds.observe({ outcome }, elapsedMs / 1_000);
    counts.rollups.answered(source, outcome, elapsedMs);
    if (fingerprint !== null) counts.secretMatches.notice(source, fingerprint);
    if (asked.hasLeft && isRecorded(answer)) counts.unanswered.notice(delivery.id, 'left');
    if (answer.outcome !== 'unauthorized') return report(answer, elapsedMs, asked);
    const explained = explain(answer, elapsedMs, asked).finally(() => explaining.delete(explained));
    explaining.add(explained);
  }

  async function explain(
    answer: Answer & { delivery: RefusedDelivery },
    elapsedMs: number,
    asked: Asked,
  ): Promise<void> {
    const { headers, body } = asked;
    await nextTurn(); // by then, the answer is written to the socket
    const { delivery } = answer;
    const fault = causeInHeaders(headers);
    const cause =
      fault === undefined
        ? await trial.find(delivery.source, String(headers[SIGNATURE_HEADER]), body)
        : { reason: fault, signedBy: null };
    // Without the other source: the log is also read by those who may see one source alone.
    report({ ...answer, reason: cause.reason, delivery: { ...delivery, ...cause } }, elapsedMs, asked);
  }

  /** Writes the trace of a refusal, and the line of what was not only counted. */
  function report(answer: Answer, elapsedMs: number, { hasLeft }: Asked): void {
    const { delivery, outcome, httpStatus } = answer;
    if (answer.outcome === 'unauthorized' || answer.outcome === 'refused') {
      if (traceRefusal(answer.delivery) === 'counted') return;
    }
    const line = {
      delivery: delivery.id,
      source: delivery.source,
      outcome,
      status: httpStatus,
      unanswered: hasLeft ? 'left' : undefined,
      ms: Math.round(elapsedMs * 10) / 10,
      bytes: delivery.bodyBytes ?? undefined,
      event: answer.eventId,
      job: delivery.jobId ?? undefined,
      late: answer.late || undefined,
      fingerprint: delivery.secretFingerprint ?? undefined,
      reason: answer.reason,
      remote: delivery.remoteAddress,
      peer: delivery.peerAddress ?? undefined,
    };
    if (outcome === 'unavailable') unavailable.write(line, answer.cause);
    else lines.info(line, 'delivery');
  }

  function traceRefusal(delivery: RefusedDelivery): RefusalTrace {
    const { source, remoteAddress } = delivery;
    if (remoteAddress !== null) counts.refusedAddresses.notice(source, remoteAddress);
    return refusals.trace(delivery);
  }

  /** Not of a repeat: nobody could look up the body of a duplicate, which is not kept. */
  function drifted(delivery: Delivery, drift: readonly Drift[], outcome: DeliveryOutcome): void {
    if (outcome === 'accepted' || outcome === 'quarantined')
      counts.drift.notice(delivery.source, delivery.id, drift);
  }

  return {
    answered,
    drifted,
    overdue: (source) => metrics.overdueSecrets.inc({ source }),
    unconfirmed: ({ id }) => counts.unanswered.notice(id, 'unavailable'),
    close: async () => {
      await Promise.all(explaining);
      unavailable.close();
      await refusals.close();
    },
  };
}

/** Refusals have rows, too, but their senders gain nothing by an answer. */
const isRecorded = ({ outcome, isVerified }: Answer): boolean => isVerified && outcome !== 'unavailable';

type DeliveryLine = Readonly<Record<string, unknown>> & {
  readonly source?: string;
  readonly job?: string | undefined;
};

/** Of those whose deliveries have no line, in a second. The line with their count then has some ten kilobytes at most. */
const JOBS_NAMED = 100;

/**
 * The lines of answers with 503. In a flood a line costs more than its answer, so they are limited by cause. The jobs of the others
 * are named, since their deliveries leave no other trace if their sender never repeats them.
 */
export function createUnavailableLines({ log }: { log: Logger }): {
  /** `fields` of the delivery's line; `cause` is why it could not be recorded. */
  readonly write: (fields: DeliveryLine, cause: unknown) => void;
  /** Writes the last counts and stops. */
  readonly close: () => void;
} {
  const lines = log.child({}, { redact: [] });
  let jobs = new Set<string>();
  const limited = createLimitedLines({
    tellRest: (causes) => {
      log.warn({ causes, ...(jobs.size > 0 && { jobs: [...jobs] }) }, 'more deliveries unavailable');
      jobs = new Set();
    },
  });
  return {
    write: (fields, cause) => {
      const err = describeError(cause);
      const isWritten = limited.write(kindOf(cause) ?? err.code ?? err.name, () =>
        lines.warn({ ...fields, err }, 'delivery'),
      );
      const { source, job } = fields;
      if (!isWritten && job !== undefined && jobs.size < JOBS_NAMED) jobs.add(`${source}:${job}`);
    },
    close: limited.close,
  };
}

/** Each kind of failure of the ledger has lines of its own: a full disk must not hide behind a lock time-out. */
function kindOf(cause: unknown): string | undefined {
  const isLedgers = cause instanceof UnavailableError && cause.code === 'ledger';
  return isLedgers ? `ledger: ${failureOf(cause.cause).kind}` : undefined;
}
