// What the client asks, and what it makes of the answers.

import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { InvalidAnswerError } from '../../../src/origin/client.ts';
import { type Respond, startReceiver } from '../../support/receiver.ts';
import {
  ACCOUNT,
  always,
  failure,
  JOB,
  NEW_JOB,
  reply,
  scriptedClient,
  TOKEN,
} from '../../support/scripted-service.ts';

/** Longer than any answer that is read. */
const LONG = 'x'.repeat(5 * 1024 * 1024);

test('a job is created with the token and the fields of the interface', async () => {
  await using service = await startReceiver(always(201, JOB));

  const job = await scriptedClient(service).createJob({
    ...NEW_JOB,
    webhook_url: 'https://relay.example/webhooks',
  });

  expect(job).toMatchObject({
    job_id: 'job_1',
    status: 'processing',
    input_format: 'mp4',
    completed_at: null,
  });
  const [request] = service.received;
  expect(request).toMatchObject({ method: 'POST', path: '/v1/conversion_jobs' });
  expect(request?.headers).toMatchObject({
    authorization: `Bearer ${TOKEN}`,
    'content-type': 'application/json',
  });
  expect(request?.said).toEqual({ ...NEW_JOB, webhook_url: 'https://relay.example/webhooks' });
});

test('a job is read by its id, whatever characters that has', async () => {
  await using service = await startReceiver(always(200, JOB));

  await scriptedClient(service).getJob('job/../me?x=1');

  expect(service.received[0]?.path).toBe('/v1/conversion_jobs/job%2F..%2Fme%3Fx%3D1');
  expect(service.received[0]?.headers['content-type']).toBeUndefined();
});

test('fields that are unknown are dropped, and absent ones are null', async () => {
  await using service = await startReceiver(
    always(200, { job_id: 'job_1', status: 'failed', progress_percentage: 3, colour: 'red' }),
  );

  const job = await scriptedClient(service).getJob('job_1');

  expect(job).not.toHaveProperty('colour');
  expect(job).toMatchObject({ status: 'failed', error_code: null, cost_micros: null });
});

test('the account is told as the service tells it', async () => {
  await using service = await startReceiver(always(200, ACCOUNT));

  expect(await scriptedClient(service).me()).toEqual(ACCOUNT);
  expect(service.received[0]?.path).toBe('/v1/me');
});

test('a page has its filters in the query, and leads to the next', async () => {
  await using service = await startReceiver(always(200, { jobs: [JOB], next_cursor: 'a b' }));

  const page = await scriptedClient(service).listJobs({ status: 'completed', limit: 5, cursor: 'x&y' });

  expect(page.next_cursor).toBe('a b');
  expect(page.jobs).toHaveLength(1);
  expect(service.received[0]?.path).toBe('/v1/conversion_jobs?status=completed&limit=5&cursor=x%26y');
});

const threePages: Respond = (response, { path }) => {
  const cursor = new URL(path, 'http://service.test').searchParams.get('cursor');
  const page = { null: 0, second: 1, third: 2 }[String(cursor)] ?? 0;
  const jobs = [1, 2].map((number) => ({ ...JOB, job_id: `job_${page * 2 + number}` }));
  reply(response, 200, { jobs, next_cursor: ['second', 'third', null][page] });
};

test('the iterator goes through all pages, and asks for none that nobody wants', async () => {
  await using service = await startReceiver(threePages);
  const { eachJob } = scriptedClient(service);
  const ids: string[] = [];

  for await (const job of eachJob({ status: 'processing' })) ids.push(job.job_id);

  expect(ids).toEqual(['job_1', 'job_2', 'job_3', 'job_4', 'job_5', 'job_6']);
  expect(service.received.every(({ path }) => path.includes('status=processing'))).toBe(true);
  for await (const job of eachJob()) if (job.job_id === 'job_2') break;
  expect(service.received).toHaveLength(4);
});

test('a list that leads back to itself ends in an error and not never', async () => {
  await using service = await startReceiver(always(200, { jobs: [], next_cursor: 'here' }));
  const all = async () => {
    for await (const job of scriptedClient(service).eachJob()) expect.fail(job.job_id);
  };

  expect(await failure(all())).toBeInstanceOf(InvalidAnswerError);
});

test.each([
  ['a page of HTML', (response: ServerResponse) => response.writeHead(200).end('<html>')],
  ['nothing', (response: ServerResponse) => response.writeHead(204).end()],
  ['a job without an id', (response: ServerResponse) => reply(response, 200, { status: 'completed' })],
  [
    'a status that nobody knows',
    (response: ServerResponse) => reply(response, 200, { ...JOB, status: 'lost' }),
  ],
  ['more than anybody asked for', (response: ServerResponse) => reply(response, 200, { ...JOB, more: LONG })],
] as const)('%s in the place of a job is an invalid answer', async (_what, respond) => {
  await using service = await startReceiver((response) => void respond(response));

  const error = await failure(scriptedClient(service).getJob('job_1'));

  expect(error).toBeInstanceOf(InvalidAnswerError);
  expect(error).toMatchObject({ code: 'invalid_answer' });
});

test('a redirect is not followed: the token is for one address', async () => {
  await using other = await startReceiver(always(200, ACCOUNT));
  await using service = await startReceiver(
    (response) => void response.writeHead(302, { Location: other.url }).end(),
  );

  expect(await failure(scriptedClient(service).me())).toMatchObject({ code: 'http_302' });
  expect(other.received).toEqual([]);
});
