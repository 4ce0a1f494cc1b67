// The client against the sandbox itself: the two know the interface, and nothing of each other.

import { expect, test } from 'vitest';
import { TIERS } from '../../../src/sandbox/accounts/tiers.ts';
import {
  createClient,
  ForbiddenError,
  InvalidRequestError,
  type NewJob,
  NotFoundError,
  RateLimitedError,
  UnauthorizedError,
} from '../../../src/origin/client.ts';
import { newToken, order, startTestFiles, startTestSandbox, untilEnded } from '../../support/sandbox.ts';
import { failure } from '../../support/scripted-service.ts';

const newJob = (fields: Record<string, unknown> = {}) => order(fields) as NewJob;

test('a job is created, read and listed, and the account is told', async () => {
  await using files = await startTestFiles();
  await using sandbox = await startTestSandbox();
  const client = createClient({ url: sandbox.url, token: sandbox.token });

  const created = await client.createJob(
    newJob({ input_url: files.input, output_url: files.output('out.webm') }),
  );
  await untilEnded(sandbox, created.job_id);
  const job = await client.getJob(created.job_id);

  expect(created).toMatchObject({ status: 'processing', input_url: files.input, completed_at: null });
  expect(job).toMatchObject({ status: 'completed', progress_percentage: 100, job_id: created.job_id });
  expect(job).toEqual((await sandbox.call('GET', `/conversion_jobs/${job.job_id}`)).body);
  expect(await client.listJobs({ status: 'completed' })).toEqual({ jobs: [job], next_cursor: null });
  expect(await client.listJobs({ status: 'failed' })).toEqual({ jobs: [], next_cursor: null });
  const { body } = await sandbox.call('GET', '/me');
  expect({ ...(await client.me()), token: null }).toEqual({ ...body, token: null });
});

test('the iterator finds every job once, whatever the size of the pages', async () => {
  await using sandbox = await startTestSandbox();
  const client = createClient({ url: sandbox.url, token: sandbox.token });
  const made: string[] = [];
  for (let count = 0; count < 5; count++) made.push((await client.createJob(newJob())).job_id);

  const found: string[] = [];
  for await (const job of client.eachJob({ limit: 2 })) found.push(job.job_id);

  expect(found).toEqual(made.toReversed());
});

test('each error answer of the sandbox is an error of its own', async () => {
  await using sandbox = await startTestSandbox();
  const clientWith = (token: string) => createClient({ url: sandbox.url, token });
  const reader = clientWith(newToken(sandbox.sandbox, { scopes: ['jobs:read'] }));

  const unknown = await failure(clientWith('cvs_test_nobody').me());
  const missing = await failure(reader.getJob('job_aaaaaaaaaaaaaaaaaaaaaaaa'));
  const forbidden = await failure(reader.createJob(newJob()));
  const faulty = await failure(
    clientWith(sandbox.token).createJob(newJob({ input_url: 'file:///etc/passwd' })),
  );

  expect(unknown).toBeInstanceOf(UnauthorizedError);
  expect(missing).toBeInstanceOf(NotFoundError);
  expect(forbidden).toBeInstanceOf(ForbiddenError);
  expect(faulty).toBeInstanceOf(InvalidRequestError);
  expect(faulty).toMatchObject({ code: 'validation_failed', details: [{ field: 'input_url' }] });
  expect(missing).toMatchObject({
    httpStatus: 404,
    rateLimit: { limit: expect.any(Number) as number, remaining: expect.any(Number) as number },
  });
});

test('a burst that is used up is waited out to its reset, or told at once where that is too long', async () => {
  const tight = { ...TIERS, enterprise: { ...TIERS.enterprise, burstPerMinute: 2 } };
  await using sandbox = await startTestSandbox({ tiers: tight });
  const waits: number[] = [];
  const sleep = (ms: number) => {
    waits.push(ms);
    return Promise.resolve();
  };
  const options = { url: sandbox.url, token: sandbox.token, sleep };
  const client = createClient({ ...options, maxRetries: 1, maxWaitMs: 90_000 });
  await client.me();
  await client.me();

  const waitedOut = await failure(client.me());
  const atOnce = await failure(createClient({ ...options, maxWaitMs: 100 }).me());

  // Nobody really waited, so it is limited again.
  expect(waitedOut).toBeInstanceOf(RateLimitedError);
  expect(waits).toHaveLength(1);
  expect(waits[0]).toBeGreaterThan(30_000);
  expect(waits[0]).toBeLessThanOrEqual(62_000);
  expect(atOnce).toBeInstanceOf(RateLimitedError);
  expect(atOnce).toMatchObject({ code: 'rate_limited', rateLimit: { remaining: 0 } });
});
