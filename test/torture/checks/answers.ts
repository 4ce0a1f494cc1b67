// The answers that senders got: none is false, none is late, and a fault excuses only answers of replicas that it touched.

import type { Attempt, Recorded } from '../recorded.ts';
import { PATIENCE_MS } from '../request.ts';
import { type Violation, violation } from './violation.ts';
import { attemptSpan, touches, injectionsDuring } from './windows.ts';
import { isAcknowledged } from '../../support/sender.ts';

/** The answers to a request of each kind while no fault is at work. */
const EXPECTED: Readonly<Record<Attempt['notice']['kind'], readonly string[]>> = {
  new: ['202 accepted', '200 duplicate', '200 conflict'],
  repeat: ['200 duplicate', '200 conflict', '202 accepted'],
  conflict: ['200 conflict', '202 accepted', '200 duplicate'],
  quarantine: ['202 quarantined'],
  malformed: ['400'],
  forged: ['401'],
  refused: ['405', '413', '415'],
};

/** Faults that no sender may notice: those of the broker, of clocks, of other senders, and the rotation of secrets. */
const INVISIBLE_TO_SENDERS =
  /^(rabbitmq-|memory-alarm|exchange-|queue-|reject-publish|clock-jump|redelivery-storm|secret-rotation)/;

/** Every request is answered within 10 s, unless its replica is frozen or cut off from its senders. */
export function lateAnswers(recorded: Recorded): Violation[] {
  return recorded.attempts.flatMap((attempt) => {
    const waitedMs = attempt.lateAnswerMs ?? attempt.endMs - attempt.startMs;
    if (attempt.error !== 'time-out' && waitedMs < PATIENCE_MS) return [];
    const span = { fromMs: attempt.startMs, toMs: attempt.startMs + waitedMs };
    const isCutOff = injectionsDuring(recorded, span).some(
      (injection) => injection.silences && touches(injection, attempt.replica),
    );
    if (isCutOff) return [];
    return [
      violation(
        'late answer',
        `${attempt.requestId} of replica ${attempt.replica}: ${Math.round(waitedMs)} ms`,
      ),
    ];
  });
}

/**
 * Whatever fails, a forgery is never acknowledged, and what its source signed is never rejected for good. Without a fault
 * that senders may notice, each request gets the answer of its kind.
 */
export function wrongAnswers(recorded: Recorded): Violation[] {
  return recorded.attempts.flatMap((attempt) => {
    const { status, outcome, error, notice } = attempt;
    const said = status === undefined ? `${error}` : `${status} ${outcome ?? ''}`.trim();
    const wrong = (why: string) => [
      violation(
        'wrong answer',
        `${attempt.requestId} (${notice.kind}) got ${said} from replica ${attempt.replica}: ${why}`,
      ),
    ];
    if (EXPECTED[notice.kind].includes(said)) return [];
    // The connection is closed on a body that is too large, and the answer may be lost with it.
    if (notice.refusal === 'too-large' && status === undefined) return [];
    if (isAcknowledged(attempt)) return wrong('no such acknowledgement is due');
    if (status === 401 && !isInForce(recorded, attempt)) return [];
    const excuses = injectionsDuring(recorded, attemptSpan(attempt)).filter(
      (injection) => !INVISIBLE_TO_SENDERS.test(injection.fault) && touches(injection, attempt.replica),
    );
    if (excuses.length === 0) return wrong('no fault was at work there that senders may see');
    if (status === undefined || status === 503 || status === 408) return [];
    // The fault may have cut the body short.
    return status === 400 && excuses.some(({ silences }) => silences)
      ? []
      : wrong('it was signed by its source');
  });
}

/**
 * The listening socket's queue holds one connection while a replica stops, and the system may fill that place between the last look
 * and the close.
 */
const CUT_OFF_MAX = 1;

/** A replica that stops answers whatever was sent on a connection that it had. */
export function cutOffRequests({ injections }: Recorded): Violation[] {
  return injections
    .filter(({ cutOff = 0 }) => cutOff > CUT_OFF_MAX)
    .map(({ fault, replicas, cutOff }) =>
      violation('wrong answer', `${fault}: ${cutOff} requests got no answer from replica ${replicas.join()}`),
    );
}

/** Every 503 says when to come back. */
export function missingRetryAfter({ attempts }: Recorded): Violation[] {
  return attempts
    .filter(({ status, retryAfter = '' }) => status === 503 && !/^[1-9]\d*$/.test(retryAfter))
    .map(({ requestId, retryAfter }) =>
      violation('wrong answer', `${requestId} got 503 with Retry-After ${retryAfter}`),
    );
}

/** Whether the secret that signed it was one of its source's from its start to its end. */
function isInForce({ secrets }: Recorded, { secret, startMs, endMs }: Attempt): boolean {
  const found = secrets.find((each) => each.secret === secret);
  return found !== undefined && found.fromMs <= startMs && endMs <= found.untilMs;
}
