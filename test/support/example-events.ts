// The events of many jobs as messages, with the bytes that the relay makes, and what a subscriber has to make of them.

import { toMessage } from '../../src/relay/cloud-event.ts';
import type { OutgoingMessage, Publisher } from '../../src/relay/publisher.ts';
import type { Effect } from './examples.ts';
import { completed, failed, progress } from './sender.ts';
import { pause } from './until.ts';

const PERCENTAGES = [0, 12, 24, 36, 48, 60, 72, 84, 96];
export const EVENTS_PER_JOB = PERCENTAGES.length + 1;
const JOBS_AT_ONCE = 40;
const RETRY_MS = 50;

export const jobsOf = (count: number, from = 0): string[] =>
  Array.from({ length: count }, (_, index) => `job_${from + index}`);

/** The effects of a job's events, in their order. */
export function lifeOf(job: string): Effect[] {
  const end: Effect = job.endsWith('7')
    ? { job, status: 'failed', progress: 30, cost: null }
    : { job, status: 'completed', progress: 100, cost: 125 };
  return [
    ...PERCENTAGES.map((percent): Effect => ({ job, status: 'processing', progress: percent, cost: null })),
    end,
  ];
}

let sequence = 0;

export function messageOf({ job, status, progress: percent }: Effect): OutgoingMessage {
  const notification = { completed, failed, processing: (id: string) => progress(id, percent ?? 0) }[status](
    job,
  );
  const isProgress = status === 'processing';
  sequence += 1;
  const event = {
    sequence: String(sequence),
    source: 'default',
    jobId: job,
    status,
    progress: isProgress ? percent : null,
    late: false,
    occurredAt: isProgress ? null : '2026-01-15T10:35:00Z',
    recordedAt: new Date(),
    data: JSON.stringify(notification),
  };
  return toMessage(event, 'job');
}

/** A replay's copy has the same id and bytes. */
const copyOf = (message: OutgoingMessage): OutgoingMessage => ({
  ...message,
  headers: { replay: 'a-replay', replayed_by: 'a test' },
});

/** Publishes one until the broker has it, however often that must be tried. */
export async function publish(publisher: Publisher, message: OutgoingMessage): Promise<void> {
  for (;;) {
    const { result } = await publisher.publish(message);
    if (result === 'confirmed') return;
    await pause(RETRY_MS);
  }
}

/**
 * Publishes the events of these jobs, those of each job in order, and 40 jobs at a time. `onPublished` is called after each
 * event. With `isCopied`, a third of them come again, after newer events of their job.
 */
export async function publishLives(
  publisher: Publisher,
  jobs: readonly string[],
  { isCopied = false, onPublished = () => {} }: { isCopied?: boolean; onPublished?: () => void } = {},
): Promise<void> {
  const waiting = [...jobs];
  const publishNext = async () => {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
      const messages = lifeOf(job).map(messageOf);
      for (const [index, message] of messages.entries()) {
        await publish(publisher, message);
        onPublished();
        const earlier = messages[index - 1];
        if (isCopied && index % 3 === 1 && earlier) await publish(publisher, copyOf(earlier));
      }
    }
  };
  await Promise.all(Array.from({ length: JOBS_AT_ONCE }, publishNext));
}
