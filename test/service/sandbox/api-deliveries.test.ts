// The list of webhooks, which the real service shows in its dashboard: attempts, results, and redelivery.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answer, startReceiver } from '../../support/receiver.ts';
import {
  clientOf,
  createJob,
  newToken,
  startTestFiles,
  startTestSandbox,
  type TestFiles,
  type TestSandbox,
  untilEnded,
} from '../../support/sandbox.ts';

type Delivery = {
  readonly id: string;
  readonly job_id: string;
  readonly event: string;
  readonly url: string;
  readonly state: string;
  readonly created_at: string;
  readonly body?: string;
  readonly attempts: readonly Record<string, unknown>[];
};
type Page = { readonly webhook_deliveries: readonly Delivery[]; readonly next_cursor: string | null };

let on: TestSandbox;
let files: TestFiles;
beforeAll(async () => {
  files = await startTestFiles();
  on = await startTestSandbox();
});
afterAll(async () => {
  await on[Symbol.asyncDispose]();
  await files[Symbol.asyncDispose]();
});

const list = async (query: string, token = on.token) =>
  (await on.call<Page>('GET', `/webhook_deliveries${query}`, { token })).body;

/** The delivery of a job that fails at once. */
const failing = () => ({
  job_type: 'video',
  input_url: files.corrupt,
  output_url: files.output('never.webm'),
  input_format: 'mp4',
  output_format: 'webm',
});

/** Creates a job that fails at once; resolves when its webhook was delivered. */
async function failedJob(webhookUrl: string, token = on.token): Promise<Delivery> {
  const { body: job } = await on.call('POST', '/conversion_jobs', {
    token,
    body: { ...failing(), webhook_url: webhookUrl },
  });
  const found = await expect
    .poll(async () => (await list(`?job_id=${String(job['job_id'])}`, token)).webhook_deliveries[0]?.state)
    .toBe('delivered')
    .then(() => list(`?job_id=${String(job['job_id'])}`, token));
  return found.webhook_deliveries[0] as Delivery;
}

describe('a delivery', () => {
  test('is listed with its attempts, and shown with the bytes that were signed', async () => {
    await using receiver = await startReceiver(answer(500, 204));
    const delivery = await failedJob(receiver.url);
    expect(delivery).toEqual({
      id: expect.stringMatching(/^whd_[a-z0-9]{24}$/),
      job_id: expect.stringMatching(/^job_/),
      event: 'failed',
      url: receiver.url,
      state: 'delivered',
      created_at: expect.stringMatching(/Z$/),
      attempts: [
        {
          attempt: 1,
          started_at: expect.any(String),
          duration_ms: expect.any(Number),
          http_status: 500,
          error: null,
        },
        {
          attempt: 2,
          started_at: expect.any(String),
          duration_ms: expect.any(Number),
          http_status: 204,
          error: null,
        },
      ],
    });
    const { body } = await on.call<Delivery>('GET', `/webhook_deliveries/${delivery.id}`);
    expect(body).toEqual({ ...delivery, body: receiver.received[0]?.body.toString('utf8') });
  });

  test('is sent again on request, byte for byte, and that is an attempt more', async () => {
    await using receiver = await startReceiver();
    const { id } = await failedJob(receiver.url);
    const reply = await on.call<Delivery>('POST', `/webhook_deliveries/${id}/redeliver`);
    expect(reply).toMatchObject({ status: 202, body: { id } });
    const received = await receiver.untilReceived(2);
    expect(received[1]?.body).toEqual(received[0]?.body);
    await expect
      .poll(async () => (await on.call<Delivery>('GET', `/webhook_deliveries/${id}`)).body.attempts.length)
      .toBe(2);
  });

  test('of another account does not exist: not to be read, sent or counted from', async () => {
    await using receiver = await startReceiver();
    const { id } = await failedJob(receiver.url);
    const token = newToken(on.sandbox, { account: on.sandbox.accounts.open('another') });
    const cursor = Buffer.from(`deliveries:${id}`).toString('base64url');
    expect(await on.call('GET', `/webhook_deliveries/${id}`, { token })).toMatchObject({ status: 404 });
    expect(await on.call('POST', `/webhook_deliveries/${id}/redeliver`, { token })).toMatchObject({
      status: 404,
    });
    expect(await on.call('GET', `/webhook_deliveries?cursor=${cursor}`, { token })).toMatchObject({
      status: 422,
    });
    expect((await list('', token)).webhook_deliveries).toEqual([]);
    expect(receiver.received).toHaveLength(1);
  });
});

describe('the list', () => {
  test('has the newest first, a page at a time, and of one job alone when asked', async () => {
    await using receiver = await startReceiver();
    const token = newToken(on.sandbox, { account: on.sandbox.accounts.open('with deliveries') });
    const made: string[] = [];
    for (let count = 0; count < 5; count++) made.unshift((await failedJob(receiver.url, token)).id);

    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const page: Page = await list(`?limit=2${cursor === null ? '' : `&cursor=${cursor}`}`, token);
      seen.push(...page.webhook_deliveries.map(({ id }) => id));
      cursor = page.next_cursor;
    } while (cursor !== null);
    expect(seen).toEqual(made);
    expect((await list('?job_id=job_of_nobody', token)).webhook_deliveries).toEqual([]);
  });

  test.for([
    ['?limit=0', 'limit'],
    ['?cursor=rubbish', 'cursor'],
    [`?cursor=${Buffer.from('deliveries:whd_none').toString('base64url')}`, 'cursor'],
    [`?job_id=${'x'.repeat(300)}`, 'job_id'],
    ['?job_id=a&job_id=b', 'job_id'],
    ['?state=pending', 'state'],
  ] as const)('%s is 422 and names %s', async ([query, field]) => {
    expect(await on.call('GET', `/webhook_deliveries${query}`)).toMatchObject({
      status: 422,
      body: { error: 'validation_failed', details: [{ field, message: expect.any(String) }] },
    });
  });

  test.for(['GET', 'POST'] as const)('%s of a delivery that does not exist is 404', async (method) => {
    const path = `/webhook_deliveries/whd_none${method === 'POST' ? '/redeliver' : ''}`;
    expect(await on.call(method, path)).toMatchObject({ status: 404, body: { error: 'not_found' } });
  });
});

describe('who is told', () => {
  test('a job without an address of its own is told to the account, and of what the account wants', async () => {
    await using receiver = await startReceiver();
    const { accounts } = on.sandbox;
    const account = accounts.change(accounts.open('with an address'), {
      webhookUrl: receiver.url,
      eventKinds: ['completed'],
    });
    const token = newToken(on.sandbox, { account });
    const own = clientOf(on.url, token);
    const fields = { output_url: files.output('told.webm') };
    const failed = await createJob(own, { ...fields, input_url: files.corrupt });
    const completed = await createJob(own, { ...fields, input_url: files.input });
    await untilEnded(own, failed.job_id);
    await untilEnded(own, completed.job_id);
    const [told] = await receiver.untilReceived(1);
    expect(told?.said).toMatchObject({ job_id: completed.job_id, status: 'completed' });
    expect((await list('', token)).webhook_deliveries.map(({ event }) => event)).toEqual(['completed']);
  });

  test('with no address anywhere nobody is, and the job runs all the same', async () => {
    const job = await createJob(on, { input_url: files.input, output_url: files.output('untold.webm') });
    expect(await untilEnded(on, job.job_id)).toMatchObject({ status: 'completed', webhook_url: null });
    expect((await list(`?job_id=${job.job_id}`)).webhook_deliveries).toEqual([]);
  });

  test('an account that wants fewer attempts has fewer', async () => {
    await using receiver = await startReceiver(answer(500));
    const { accounts } = on.sandbox;
    const account = accounts.change(accounts.open('impatient'), {
      webhookUrl: receiver.url,
      eventKinds: ['failed'],
      maxAttempts: 1,
    });
    const token = newToken(on.sandbox, { account });
    await on.call('POST', '/conversion_jobs', {
      token,
      body: failing(),
    });
    await expect.poll(async () => (await list('', token)).webhook_deliveries[0]?.state).toBe('given_up');
    expect(receiver.received).toHaveLength(1);
  });
});
