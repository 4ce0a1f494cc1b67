// The life of a job: progress, end, cost, notifications, and how many run at a time. The engine is simulated; everything
// else is real.

import { describe, expect, test } from 'vitest';
import { costOf, MICROS_PER_MINUTE } from '../../../src/sandbox/jobs/cost.ts';
import { createMilestones } from '../../../src/sandbox/jobs/milestones.ts';
import { DEFAULT_SETTINGS } from '../../../src/sandbox/settings.ts';
import type { Job } from '../../../src/sandbox/jobs/job.ts';
import { sign } from '../../../src/sandbox/webhooks/signature.ts';
import { startOrigin } from '../../support/origin.ts';
import { startReceiver } from '../../support/receiver.ts';
import {
  createJob,
  newToken,
  order,
  startTestFiles,
  startTestSandbox,
  untilEnded,
} from '../../support/sandbox.ts';
import { waitFor } from '../../support/waits.ts';

/** Which of these steps, each a percentage and a time in milliseconds, get a webhook. */
function told(from: number, steps: readonly (readonly [number, number])[]): number[] {
  const isWorthTelling = createMilestones(from);
  return steps.filter(([percentage, ms]) => isWorthTelling(percentage, ms)).map(([percentage]) => percentage);
}

describe('a job', () => {
  test('that succeeds has its output written, and its whole story told, signed and in order', async () => {
    await using files = await startTestFiles();
    await using receiver = await startReceiver();
    await using on = await startTestSandbox({ simulatedStepMs: 120 });
    const { job_id: jobId } = await createJob(on, {
      input_url: files.input,
      output_url: files.output('output.webm'),
      webhook_url: receiver.url,
    });
    const job = await untilEnded(on, jobId);
    const output = Buffer.from(await (await fetch(files.output('output.webm'))).arrayBuffer());

    expect(job).toMatchObject({
      status: 'completed',
      progress_percentage: 100,
      estimated_completion: null,
      completed_at: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
      failed_at: null,
      error_code: null,
      error_message: null,
      cost_micros: MICROS_PER_MINUTE,
      cost_cents: 1,
      output_size_bytes: output.length,
    });
    const tookMs = Date.parse(job.completed_at ?? '') - Date.parse(job.created_at);
    expect(job.processing_time_seconds).toBeGreaterThanOrEqual(2); // ten steps of 120 ms at least, in whole seconds
    expect(job.processing_time_seconds).toBeLessThanOrEqual(Math.ceil((tookMs + 10) / 1_000));

    await expect.poll(() => receiver.received.at(-1)?.said['status']).toBe('completed');
    const notifications = receiver.received.map(({ said }) => said);
    const percentages = notifications.map((said) => Number(said['progress_percentage']));
    expect(notifications.length).toBeGreaterThanOrEqual(2);
    expect(percentages).toEqual(percentages.toSorted((left, right) => left - right));
    expect(new Set(percentages.map((percentage) => Math.floor(percentage / 10))).size).toBe(
      notifications.length,
    );
    expect(notifications[0]).toMatchObject({
      job_id: jobId,
      status: 'processing',
      estimated_completion: expect.any(String),
    });
    expect(notifications.at(-1)).toEqual({
      job_id: jobId,
      status: 'completed',
      job_type: 'video',
      progress_percentage: 100,
      cost_micros: job.cost_micros,
      cost_cents: job.cost_cents,
      processing_time_seconds: job.processing_time_seconds,
      output_size_bytes: job.output_size_bytes,
      input_format: 'mp4',
      output_format: 'webm',
      created_at: job.created_at,
      completed_at: job.completed_at,
    });
    const secret = on.sandbox.accounts.signingSecret(on.sandbox.accounts.open('default').id);
    for (const { headers, body } of receiver.received) {
      expect(headers['x-service-signature']).toBe(sign(secret, body));
    }
  });

  test('whose input is corrupt has failed with INVALID_INPUT, and says so', async () => {
    await using files = await startTestFiles();
    await using receiver = await startReceiver();
    await using on = await startTestSandbox();
    const { job_id: jobId } = await createJob(on, {
      input_url: files.corrupt,
      output_url: files.output('none.webm'),
      webhook_url: receiver.url,
    });
    const job = await untilEnded(on, jobId);
    expect(job).toMatchObject({
      status: 'failed',
      completed_at: null,
      failed_at: expect.stringMatching(/Z$/),
      error_code: 'INVALID_INPUT',
      error_message: expect.stringMatching(/^.{10,}$/),
      cost_micros: null,
      cost_cents: null,
      output_size_bytes: null,
    });
    const [notification] = await receiver.untilReceived(1);
    expect(notification?.said).toEqual({
      job_id: jobId,
      status: 'failed',
      job_type: 'video',
      progress_percentage: job.progress_percentage,
      error_message: job.error_message,
      error_code: 'INVALID_INPUT',
      created_at: job.created_at,
      failed_at: job.failed_at,
    });
    expect((await fetch(files.output('none.webm'))).status).toBe(404);
  });

  test.for([
    ['an input that is not there', { input_url: '/missing.mp4' }, 'INPUT_UNREACHABLE'],
    ['an output that nobody takes', { output_url: '/.hidden' }, 'OUTPUT_UNWRITABLE'],
  ] as const)('with %s has failed, and says with what', async ([, paths, code]) => {
    await using files = await startTestFiles();
    await using on = await startTestSandbox();
    const fields: Record<string, string> = {
      input_url: files.input,
      output_url: files.output('output.webm'),
    };
    for (const [name, path] of Object.entries(paths)) fields[name] = `${files.url}${path}`;
    const { job_id: jobId } = await createJob(on, fields);
    expect(await untilEnded(on, jobId)).toMatchObject({ status: 'failed', error_code: code });
  });

  test('shows its progress while it runs, and when it should be done', async () => {
    await using files = await startTestFiles();
    await using on = await startTestSandbox({ simulatedStepMs: 50 });
    const { job_id: jobId } = await createJob(on, {
      input_url: files.input,
      output_url: files.output('output.webm'),
    });
    const shown: Job[] = [];
    await waitFor(
      async () => {
        const { body } = await on.call<Job>('GET', `/conversion_jobs/${jobId}`);
        if (body.status !== 'processing') return;
        shown.push(body);
        throw new Error(`at ${body.progress_percentage} %`);
      },
      { timeout: 10_000, interval: 10 },
    );
    const halfway = shown.find(({ progress_percentage: percentage }) => percentage >= 20);
    expect(Date.parse(halfway?.estimated_completion ?? '')).toBeGreaterThan(
      Date.parse(halfway?.created_at ?? ''),
    );
    expect(new Set(shown.map(({ progress_percentage: percentage }) => percentage)).size).toBeGreaterThan(3);
    expect(await untilEnded(on, jobId)).toMatchObject({ status: 'completed', estimated_completion: null });
  });
});

describe('at a time', () => {
  test('run no more jobs than may, of one account no more than its share, and the others wait their turn', async () => {
    const running: { account: 'one' | 'two'; end: () => void }[] = [];
    let most = 0;
    const mostOf = { one: 0, two: 0 };
    await using origin = await startOrigin((request, response) => {
      const account = request.url?.startsWith('/one/') === true ? 'one' : 'two';
      running.push({ account, end: () => void response.writeHead(404).end() });
      most = Math.max(most, running.length);
      mostOf[account] = Math.max(mostOf[account], running.filter((each) => each.account === account).length);
    });
    await using on = await startTestSandbox({
      jobs: { ...DEFAULT_SETTINGS.jobs, concurrent: 3, concurrentPerAccount: 2 },
    });
    const tokens = { one: on.token, two: newToken(on.sandbox, { account: on.sandbox.accounts.open('two') }) };
    const made: Promise<unknown>[] = [];
    for (const [name, token] of Object.entries(tokens)) {
      for (let count = 0; count < 10; count++) {
        const body = order({ input_url: `${origin.url}/${name}/${count}.mp4` });
        made.push(on.call('POST', '/conversion_jobs', { token, body }));
      }
    }
    await Promise.all(made);

    const left = { one: 10, two: 10 };
    while (left.one + left.two > 0) {
      // No slot stays empty while a job may take it.
      const may = Math.min(3, Math.min(2, left.one) + Math.min(2, left.two));
      await expect.poll(() => running.length, { interval: 5 }).toBe(may);
      const first = running.shift();
      if (first === undefined) break;
      left[first.account] -= 1;
      first.end();
    }
    expect({ most, mostOf }).toEqual({ most: 3, mostOf: { one: 2, two: 2 } });
  });
});

describe('old jobs', () => {
  test('that have ended are dropped with their webhooks, those that run are not', async () => {
    await using files = await startTestFiles();
    await using receiver = await startReceiver();
    await using origin = await startOrigin(() => {}); // never answers
    await using on = await startTestSandbox({
      jobs: { ...DEFAULT_SETTINGS.jobs, concurrent: 4, concurrentPerAccount: 4, kept: 3 },
    });
    const running = await createJob(on, { input_url: `${origin.url}/input.mp4` });
    const ended: string[] = [];
    for (let count = 0; count < 5; count++) {
      const job = await createJob(on, { input_url: files.corrupt, webhook_url: receiver.url });
      await untilEnded(on, job.job_id);
      await receiver.untilReceived(count + 1);
      ended.push(job.job_id);
    }
    const { body } = await on.call<{ jobs: Job[] }>('GET', '/conversion_jobs');
    expect(body.jobs.map(({ job_id: jobId }) => jobId)).toEqual([
      ...ended.slice(-3).toReversed(),
      running.job_id,
    ]);
    const deliveries = await on.call<{ webhook_deliveries: { job_id: string }[] }>(
      'GET',
      '/webhook_deliveries',
    );
    expect(deliveries.body.webhook_deliveries.map(({ job_id: jobId }) => jobId)).toEqual(
      ended.slice(-3).toReversed(),
    );
  });
});

describe('the cost', () => {
  test.for([
    [0, 1],
    [0.04, 1],
    [59.9, 1],
    [60, 1],
    [60.1, 2],
    [3_600, 60],
  ] as const)(
    'of %d seconds is that of %i started minutes, in cents what it is in micro-units, rounded up',
    ([seconds, minutes]) => {
      const { cost_micros, cost_cents } = costOf(seconds);
      expect(cost_micros).toBe(minutes * 6_000);
      expect(cost_cents).toBe(Math.ceil(cost_micros / 10_000));
    },
  );
});

describe('progress is worth telling', () => {
  test('once in each ten percent', () => {
    const steps = Array.from({ length: 99 }, (_, index) => [index + 1, index * 2_000] as const);
    expect(told(0, steps)).toEqual([1, 10, 20, 30, 40, 50, 60, 70, 80, 90]);
  });

  test('and once a second, with what it has come to meanwhile', () => {
    const steps = Array.from({ length: 99 }, (_, index) => [index + 1, index * 50] as const);
    expect(told(0, steps)).toEqual([1, 21, 41, 61, 81]);
  });

  test('and not again after a restart', () => {
    expect(
      told(35, [
        [36, 0],
        [39, 5_000],
        [40, 10_000],
      ]),
    ).toEqual([40]);
  });
});
