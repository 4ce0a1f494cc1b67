// The dashboard's pages for jobs and webhook deliveries, over real sockets: create a conversion and see how it goes, look
// at what was sent, and send it again.

import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type Dashboard, newKey, seen, signedIn } from '../../support/dashboard.ts';
import { answer, startReceiver } from '../../support/receiver.ts';
import {
  createJob,
  startTestFiles,
  startTestSandbox,
  type TestSandbox,
  untilEnded,
} from '../../support/sandbox.ts';
import { waitFor } from '../../support/waits.ts';

/** A file server with the sample clip, and a receiver that the form proposes. */
async function startWithClip() {
  const files = await startTestFiles();
  const receiver = await startReceiver();
  const clip = await fetch(files.input).then((response) => response.arrayBuffer());
  await fetch(files.output('sample.mp4'), { method: 'PUT', body: clip });
  const settings = { filesUrl: files.url, receiverUrl: receiver.url };
  const stop = async () => {
    await files[Symbol.asyncDispose]();
    await receiver[Symbol.asyncDispose]();
  };
  return { files, receiver, settings, [Symbol.asyncDispose]: stop };
}

describe('a conversion', () => {
  test('of the sample clip is made by the form, once, and its page shows how it goes', async () => {
    await using started = await startWithClip();
    const { receiver, settings } = started;
    await using on = await startTestSandbox({ ...settings, simulatedStepMs: 150 });
    const visiting = await signedIn(on.sandbox);
    const form = await visiting.get('/jobs/new');
    expect(form.text).toContain(`name="webhook_url" type="url" value="${receiver.url}"`);
    expect(form.text).toContain('name="clip" value="sample.mp4" checked');

    const sent = {
      clip: 'sample.mp4',
      output_format: 'gif',
      output_url: '',
      webhook_url: receiver.url,
      key: newKey(),
    };
    const { status, location } = await visiting.post('/jobs/new', sent);
    expect({ status, location }).toEqual({
      status: 303,
      location: expect.stringMatching(/^\/dashboard\/jobs\/job_\w{24}$/),
    });
    expect(await visiting.post('/jobs/new', sent)).toMatchObject({ status: 303, location });
    const { body } = await on.call<{ jobs: { job_id: string; output_format: string; output_url: string }[] }>(
      'GET',
      '/conversion_jobs',
    );
    expect(body.jobs).toHaveLength(1);
    expect(body.jobs[0]).toMatchObject({
      output_format: 'gif',
      output_url: expect.stringMatching(/converted_\w+\.gif$/),
    });

    const path = (location ?? '').replace('/dashboard', '');
    const during = await visiting.get(path);
    expect(seen(during)).toContain('processing');
    expect(during.text).toContain('<noscript><meta http-equiv="refresh" content="3"></noscript>');
    await untilEnded(on, body.jobs[0]?.job_id ?? '');
    await waitFor(async () => {
      const after = await visiting.get(path);
      expect(seen(after)).toMatch(/completed 100 %/);
      expect(seen(after)).toMatch(/completed delivered 1 200/);
      expect(after.text).not.toContain('http-equiv="refresh"');
    });
  });

  test('of the corrupt clip fails, and its page says why', async () => {
    await using started = await startWithClip();
    const { files, settings } = started;
    await fetch(files.output('corrupt.mp4'), { method: 'PUT', body: 'no film' });
    await using on = await startTestSandbox(settings);
    const visiting = await signedIn(on.sandbox);
    const { location } = await visiting.post('/jobs/new', { clip: 'corrupt.mp4', output_format: 'webm' });
    const path = (location ?? '').replace('/dashboard', '');
    await untilEnded(on, path.replace('/jobs/', ''));
    expect(seen(await visiting.get(path))).toMatch(/failed 0 % INVALID_INPUT :/);
    expect(seen(await visiting.get('/jobs?status=failed'))).toContain('INVALID_INPUT');
  });

  test('of a file of one’s own needs addresses that jobs may use; each fault is said, and the form stays filled', async () => {
    await using on = await startTestSandbox({ allowLocal: false });
    const visiting = await signedIn(on.sandbox);
    const form = await visiting.get('/jobs/new');
    expect(form.text).toContain('type="hidden" name="clip" value="own"');
    const refused = await visiting.post('/jobs/new', {
      clip: 'own',
      input_url: 'file:///etc/passwd',
      input_format: 'mp4',
      output_url: 'http://127.0.0.1:8080/out',
      output_format: 'exe',
      webhook_url: 'https://user:word@relay.example.com/',
    });
    expect(refused.status).toBe(422);
    for (const words of [
      'The input’s address must be an absolute https:// URL',
      'The output’s address must be an absolute https:// URL',
      'The output’s format must be one of mp4',
      'The address for webhooks must not hold a user name or password',
    ]) {
      expect(seen(refused)).toContain(words);
    }
    expect(refused.text).toContain('value="file:///etc/passwd"');
    const made = await visiting.post('/jobs/new', {
      clip: 'own',
      input_url: 'https://files.example.com/in.mp4',
      input_format: 'mp4',
      output_url: 'https://files.example.com/out.webm',
      output_format: 'webm',
      webhook_url: '',
    });
    expect(made.status).toBe(303);
  });

  test('in a format that the tier does not have is refused, and so is one without room', async () => {
    await using on = await startTestSandbox({
      jobs: { concurrent: 1, concurrentPerAccount: 1, unended: 0, kept: 10 },
    });
    const visiting = await signedIn(on.sandbox);
    await visiting.post('/tier', { tier: 'free' });
    const form = {
      clip: 'own',
      input_url: 'https://a.example/i',
      input_format: 'mp4',
      output_url: 'https://a.example/o',
    };
    const wrong = await visiting.post('/jobs/new', { ...form, output_format: 'mkv' });
    expect(wrong.status).toBe(403);
    expect(seen(wrong)).toContain('the tier free takes mp4, webm, mp3, gif alone');
    const full = await visiting.post('/jobs/new', { ...form, output_format: 'gif' });
    expect(full.status).toBe(503);
    expect(seen(full)).toContain('too many jobs are under way');
  });
});

const idsOf = ({ text }: { text: string }) => text.match(/job_\w{24}(?=<\/bdi>)/g) ?? [];

describe('jobs', () => {
  test('are listed page by page, newest first, by their state', async () => {
    await using on = await startTestSandbox();
    const visiting = await signedIn(on.sandbox);
    expect(seen(await visiting.get('/jobs'))).toContain('No jobs so far. Convert the sample clip');
    const jobs = [];
    for (let count = 0; count < 30; count++) jobs.push(await createJob(on));
    for (const { job_id } of jobs) await untilEnded(on, job_id);
    const first = await visiting.get('/jobs?status=failed');
    const next = /href="(\/dashboard\/jobs\?status=failed&amp;cursor=[\w-]+)"/.exec(first.text)?.[1] ?? '';
    const second = await visiting.get(next.replace('/dashboard', '').replace('&amp;', '&'));
    expect([...idsOf(first), ...idsOf(second)]).toEqual(jobs.map(({ job_id }) => job_id).toReversed());
    expect(idsOf(first)).toHaveLength(25);
    expect(seen(await visiting.get('/jobs?status=processing'))).toContain('No job is processing.');
    expect(await visiting.get('/jobs?cursor=made-up')).toMatchObject({ status: 422 });
  });

  test('and deliveries of another account are not there', async () => {
    await using receiver = await startReceiver();
    await using files = await startTestFiles();
    await using on = await startTestSandbox();
    const job = await convert(on, files, receiver.url);
    const stranger = await signedIn(on.sandbox, 'another');
    const id = await deliveryOf(await signedIn(on.sandbox), job);
    expect(await stranger.get(`/jobs/${job}`)).toMatchObject({ status: 404 });
    expect(seen(await stranger.get('/jobs'))).toContain('No jobs so far.');
    for (const path of [`/deliveries/${id}`, `/deliveries/${id}/body`]) {
      expect(await stranger.get(path)).toMatchObject({ status: 404 });
    }
    expect(await stranger.post(`/deliveries/${id}/redeliver`)).toMatchObject({ status: 404 });
    expect(seen(await stranger.get('/deliveries'))).toContain('No webhooks so far.');
    const cursor = Buffer.from(`deliveries:${id}`).toString('base64url');
    expect(await stranger.get(`/deliveries?cursor=${cursor}`)).toMatchObject({ status: 404 });
  });
});

type Files = Awaited<ReturnType<typeof startTestFiles>>;

async function convert(on: TestSandbox, files: Files, webhook_url: string): Promise<string> {
  const urls = { input_url: files.input, output_url: files.output('out.webm'), webhook_url };
  const job = await createJob(on, urls);
  await untilEnded(on, job.job_id);
  return job.job_id;
}

/** Of the job's end. */
async function deliveryOf(visiting: Dashboard, jobId: string): Promise<string> {
  const { text } = await visiting.get(`/jobs/${jobId}`);
  return /whd_\w{24}/.exec(text)?.[0] ?? '';
}

describe('a delivery', () => {
  test('shows its attempts, the body that was signed, and its signature', async () => {
    await using receiver = await startReceiver(answer(500, 200));
    await using files = await startTestFiles();
    await using on = await startTestSandbox();
    const visiting = await signedIn(on.sandbox);
    await visiting.post('/webhooks', { events: 'completed', attempts: '5', first: '0.02' });
    const job = await convert(on, files, receiver.url);
    const [, sent] = await receiver.untilReceived(2);
    const id = await deliveryOf(visiting, job);
    const page = await waitFor(async () => {
      const found = await visiting.get(`/deliveries/${id}`);
      expect(seen(found)).toMatch(/2 200 [\d,]+ ms .* 1 500 [\d,]+ ms/);
      return found;
    });
    expect(seen(page)).toContain('State delivered');
    expect(page.text).toContain((sent?.body.toString() ?? '-').replaceAll('"', '&quot;'));
    expect(seen(page)).toContain(`X-Service-Signature: ${String(sent?.headers['x-service-signature'])}`);

    const body = await visiting.get(`/deliveries/${id}/body`);
    expect(body.text).toBe(sent?.body.toString());
    expect(body.headers.get('content-disposition')).toBe(`attachment; filename=${id}.json`);
    expect(body.headers.get('content-type')).toMatch(/^application\/octet-stream/);
    const secret = on.sandbox.accounts.signingSecret(on.sandbox.accounts.open('default').id);
    const signature = createHmac('sha256', secret).update(body.text).digest('hex');
    expect(seen(page)).toContain(`sha256=${signature}`);
  });

  test('is sent once more at a press, once for each form', async () => {
    await using receiver = await startReceiver();
    await using files = await startTestFiles();
    await using on = await startTestSandbox();
    const visiting = await signedIn(on.sandbox);
    await visiting.post('/webhooks', { events: 'completed', attempts: '1' });
    const job = await convert(on, files, receiver.url);
    await receiver.untilReceived(1);
    const id = await deliveryOf(visiting, job);
    await waitFor(async () => expect(seen(await visiting.get(`/deliveries/${id}`))).toContain('delivered'));

    const form = { key: newKey() };
    const location = `/dashboard/deliveries/${id}?after=1`;
    expect(await visiting.post(`/deliveries/${id}/redeliver`, form)).toMatchObject({ status: 303, location });
    const [first, second] = await receiver.untilReceived(2);
    expect(second?.body).toEqual(first?.body);
    await waitFor(async () => {
      const page = await visiting.get(`/deliveries/${id}?after=1`);
      expect(seen(page)).not.toContain('An attempt is on its way.');
      expect(seen(page)).toMatch(/2 200 .* 1 200/);
    });
    expect(await visiting.post(`/deliveries/${id}/redeliver`, form)).toMatchObject({ status: 303, location });
    expect(await visiting.post(`/deliveries/${id}/redeliver`)).toMatchObject({
      status: 303,
      location: `/dashboard/deliveries/${id}?after=2`,
    });
    await receiver.untilReceived(3);
    expect(seen(await visiting.get(`/deliveries/${id}?after=99`))).toContain('An attempt is on its way.');
    expect(receiver.received).toHaveLength(3);
  });
});
