// The checks with an event: a new one is accepted, and the same bytes once more are found to be a duplicate.

import { randomBytes } from 'node:crypto';
import { explain, isSuccess } from './doctor-explain.ts';
import { failed, type Finding, ok, skipped } from './doctor-finding.ts';
import { type Answer, type Endpoint, post } from './doctor-probe.ts';
import { clean } from './readable.ts';

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
  const id = eventIdIn(first, { status: 202, outcome: 'accepted' });
  if (id === undefined) {
    yield failed('event', unexpected(first, 'a new event'));
    yield skipped('redelivery', 'there is no event to repeat');
    return;
  }
  yield ok('event', `accepted with 202 as ${id}. Ignore the job ${job}`, { job_id: job, event_id: id });
  const second = await post(endpoint, body, { secret });
  const again = eventIdIn(second, { status: 200, outcome: 'duplicate' });
  yield again === id
    ? ok('redelivery', 'found to be a duplicate, with 200 and the same event_id')
    : failed('redelivery', unexpected(second, 'the same event once more'));
}

function eventIdIn(
  answer: Answer,
  { status, outcome }: { status: number; outcome: string },
): string | undefined {
  if (answer.kind === 'none' || answer.status !== status || answer.fields['outcome'] !== outcome)
    return undefined;
  const id = answer.fields['event_id'];
  return typeof id === 'string' ? clean(id) : undefined;
}

function unexpected(answer: Answer, sent: string) {
  if (answer.kind === 'none' || !isSuccess(answer)) return explain(answer, sent);
  return {
    found: `${sent} was answered with ${answer.status} and the outcome "${clean(String(answer.fields['outcome']))}"`,
    mend: 'it is not taken as the sender means it: show the operators of the service this job id',
  };
}
