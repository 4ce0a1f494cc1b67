// The events of many jobs as messages, with the bytes that the relay makes, and what a subscriber has to make of them.

import { toMessage } from '../../src/relay/cloud-event.ts';
import type { OutgoingMessage } from '../../src/relay/publication.ts';
import type { Publisher } from '../../src/relay/publisher.ts';
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

/** @param odd further fields of the data as JSON text, and another end of its time */
export function messageOf(
  { job, status, progress: percent }: Effect,
  odd: { readonly fields?: string; readonly occurredAt?: string } = {},
): OutgoingMessage {
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
    occurredAt: isProgress ? null : (odd.occurredAt ?? '2026-01-15T10:35:00Z'),
    recordedAt: new Date(),
    data: `${JSON.stringify(notification).slice(0, -1)}${odd.fields ?? ''}}`,
  };
  return toMessage(event, 'job');
}

/** What intake accepts although few senders would send it. */
export const ODD_EFFECTS: readonly Effect[] = [
  { job: 'job_odd', status: 'processing', progress: 0, cost: null },
  { job: 'job_odd', status: 'completed', progress: 100, cost: 125 },
];

export const oddMessages = (): OutgoingMessage[] => {
  const otherCase = ',"Status":{"code":3},"STATUS":"hello","Cost_Cents":"12.50","Progress_Percentage":7.5';
  const fields = `${otherCase},"huge":${'9'.repeat(5_001)},"small":1e-999`;
  const occurredAt = `2026-01-15T10:35:00.${'1'.repeat(150)}Z`;
  const [started, ended] = ODD_EFFECTS as [Effect, Effect];
  return [
    messageOf(started, { fields: `${fields},"cost_cents":"12.50"` }),
    messageOf(ended, { fields, occurredAt }),
  ];
};

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
      const messages = lifeOf(job).map((effect) => messageOf(effect));
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
