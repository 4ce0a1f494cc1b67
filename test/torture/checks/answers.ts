// What senders were answered: nothing false, nothing late, nothing that a fault elsewhere could excuse.

import type { Attempt, Recorded } from '../recorded.ts';
import { PATIENCE_MS } from '../request.ts';
import { type Violation, violation } from './violation.ts';
import { attemptSpan, touches, woundsDuring } from './windows.ts';
import { isAcknowledged } from '../../support/sender.ts';

/** What a request of that kind is answered when all is well. */
const EXPECTED: Readonly<Record<Attempt['notice']['kind'], readonly string[]>> = {
  new: ['202 accepted', '200 duplicate', '200 conflict'],
  repeat: ['200 duplicate', '200 conflict', '202 accepted'],
  conflict: ['200 conflict', '202 accepted', '200 duplicate'],
  quarantine: ['202 quarantined'],
  malformed: ['400'],
  forged: ['401'],
  refused: ['405', '413', '415'],
};

/** What no sender may notice: trouble of the broker's, of clocks, of other senders, and secrets that are rotated. */
const UNSEEN =
  /^(rabbitmq-|memory-alarm|exchange-|queue-|reject-publish|clock-jump|redelivery-storm|secret-rotation)/;

/** No answer comes after 10 s, and none stays away for so long but where a replica or its senders are cut off. */
export function lateAnswers(recorded: Recorded): Violation[] {
  return recorded.attempts.flatMap((attempt) => {
    const waitedMs = attempt.lateAnswerMs ?? attempt.endMs - attempt.startMs;
    if (attempt.error !== 'time-out' && waitedMs < PATIENCE_MS) return [];
    const span = { fromMs: attempt.startMs, toMs: attempt.startMs + waitedMs };
    const isCutOff = woundsDuring(recorded, span).some(
      (wound) => wound.silences && touches(wound, attempt.replica),
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
 * Whatever fails, a forgery is never acknowledged and nothing is refused for good that its source signed. While
 * nothing is in trouble, or only what no sender may notice, each request is answered as if all were well.
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
    // The connection is closed on a body that is too large to be read; the answer may be lost with it.
    if (notice.refusal === 'too-large' && status === undefined) return [];
    if (isAcknowledged(attempt)) return wrong('no such acknowledgement is due');
    if (status === 401 && !isInForce(recorded, attempt)) return [];
    const excuses = woundsDuring(recorded, attemptSpan(attempt)).filter(
      (wound) => !UNSEEN.test(wound.fault) && touches(wound, attempt.replica),
    );
    if (excuses.length === 0) return wrong('no fault was at work there that senders may see');
    if (status === undefined || status === 503 || status === 408) return [];
    // A body that was cut short on its way.
    return status === 400 && excuses.some(({ silences }) => silences)
      ? []
      : wrong('it was signed by its source');
  });
}

/** Who is turned away for our sake is told when to come back. */
export function unsaidReturns({ attempts }: Recorded): Violation[] {
  return attempts
    .filter(({ status, retryAfter = '' }) => status === 503 && !/^[1-9]\d*$/.test(retryAfter))
    .map(({ requestId, retryAfter }) =>
      violation('wrong answer', `${requestId} got 503 with Retry-After ${retryAfter}`),
    );
}

/** Whether what it was signed with was one of its source's secrets all the while. */
function isInForce({ secrets }: Recorded, { secret, startMs, endMs }: Attempt): boolean {
  const found = secrets.find((each) => each.secret === secret);
  return found !== undefined && found.fromMs <= startMs && endMs <= found.untilMs;
}
