// The checks with an event: a new one is accepted, and the same bytes once more are found to be a duplicate.

import { randomBytes } from 'node:crypto';
import { OUTCOME_STATUS } from '../../base/delivery-answers.ts';
import { parseEventId } from '../../event/index.ts';
import { clean } from '../../terminal/readable.ts';
import { explain, type Fault } from './explain.ts';
import { type Finding, failed, ok, skipped } from './finding.ts';
import { type Answer, type Endpoint, post } from './probe.ts';

/** By its prefix operators and subscribers see what it is. */
export const newDoctorJob = (): string => `doctor-${randomBytes(6).toString('hex')}`;

/** A job that failed: it costs nothing, has no output that somebody would fetch, and does not stay open. */
function notification(job: string): Buffer {
  const now = new Date().toISOString();
  return Buffer.from(
    JSON.stringify({
      job_id: job,
      status: 'failed',
      job_type: 'video',
      progress_percentage: 0,
      error_message: 'a test of this endpoint by "tallyhook doctor": there is no such job',
      error_code: 'DOCTOR_TEST',
      created_at: now,
      failed_at: now,
    }),
  );
}

export async function* checkEvent(
  endpoint: Endpoint,
  { secret, job }: { secret: string; job: string },
): AsyncGenerator<Finding> {
  const body = notification(job);
  const first = await post(endpoint, body, { secret });
  const id = eventIdIn(first, 'accepted');
  if (id === undefined) {
    yield failed('event', unexpected(first, 'a new event'));
    yield skipped('redelivery', 'there is no event to repeat');
    return;
  }
  if (parseEventId(id)?.jobId !== job) {
    yield failed('event', {
      found: `the job ${job} was accepted with the event_id ${id}, which is of another job`,
      mend: 'something in front changes bodies or answers, or another service answers: check host, port, path and proxy',
    });
    yield skipped('redelivery', 'the event is not known');
    return;
  }
  yield ok('event', `accepted with 202 as ${id}. Ignore the job ${job}`, { job_id: job, event_id: id });
  const second = await post(endpoint, body, { secret });
  const again = eventIdIn(second, 'duplicate');
  yield again === id
    ? ok('redelivery', 'found to be a duplicate, with 200 and the same event_id')
    : failed('redelivery', unexpected(second, 'the same event once more'));
}

function eventIdIn(answer: Answer, outcome: 'accepted' | 'duplicate'): string | undefined {
  if (answer.kind === 'none' || answer.status !== OUTCOME_STATUS[outcome]) return undefined;
  const { outcome: said, event_id: id } = answer.fields;
  return said === outcome && typeof id === 'string' ? clean(id) : undefined;
}

function unexpected(answer: Answer, sent: string): Fault {
  const outcome = answer.kind === 'answer' ? answer.fields['outcome'] : undefined;
  if (answer.kind === 'none' || typeof outcome !== 'string') return explain(answer, sent);
  const id = clean(String(answer.fields['event_id']));
  return {
    found: `${sent} was answered with ${answer.status}, the outcome "${clean(outcome)}" and the event_id ${id}`,
    mend: 'it is not taken as the sender means it: show this to the operators of the service',
  };
}
