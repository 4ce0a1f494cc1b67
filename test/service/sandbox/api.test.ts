// The API as clients see it, over real sockets. Every call below also checks that the response has the three rate limit
// headers, and that an error has the shape of service interface 7 (test/support/sandbox.ts).

import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { version } from '../../../src/base/version.ts';
import type { Job } from '../../../src/sandbox/jobs/job.ts';
import {
  ask,
  createJob,
  newToken,
  NOWHERE,
  order,
  startTestSandbox,
  type TestSandbox,
} from '../../support/sandbox.ts';

type Page = { readonly jobs: readonly Job[]; readonly next_cursor: string | null };

const ofSize = (bytes: number) => JSON.stringify({ x: 'x'.repeat(bytes) });

let on: TestSandbox;
const accountOf = (name: string) => newToken(on.sandbox, { account: on.sandbox.accounts.open(name) });
const list = (query: string, token = on.token) => on.call<Page>('GET', `/conversion_jobs${query}`, { token });

beforeAll(async () => {
  on = await startTestSandbox();
});
afterAll(() => on[Symbol.asyncDispose]());

describe('POST /conversion_jobs', () => {
  test('creates a job: 201, its address, and the whole record', async () => {
    const fields = order({ webhook_url: `${NOWHERE}/webhooks` });
    const { status, body, headers } = await on.call('POST', '/conversion_jobs', { body: fields });

    expect(status).toBe(201);
    expect(body).toEqual({
      job_id: expect.stringMatching(/^job_[a-z0-9]{24}$/),
      status: 'processing',
      ...fields,
      progress_percentage: 0,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      estimated_completion: null,
      completed_at: null,
      failed_at: null,
      error_code: null,
      error_message: null,
      cost_micros: null,
      cost_cents: null,
      processing_time_seconds: null,
      output_size_bytes: null,
    });
    expect(headers.get('location')).toBe(`/v1/conversion_jobs/${String(body['job_id'])}`);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  });

  test.for([
    ['absent', order()],
    ['null', order({ webhook_url: null })],
  ] as const)('a webhook_url that is %s is none', async ([, body]) => {
    const reply = await on.call('POST', '/conversion_jobs', { body });
    expect(reply).toMatchObject({ status: 201, body: { webhook_url: null } });
  });

  test('a Content-Type may name the charset', async () => {
    const headers = { 'Content-Type': 'application/json; charset=UTF-8' };
    expect(await on.call('POST', '/conversion_jobs', { body: order(), headers })).toMatchObject({
      status: 201,
    });
  });

  const long = `https://files.example.com/${'x'.repeat(2_100)}`;
  test.for([
    ['job_type', undefined],
    ['job_type', 'audio'],
    ['job_type', 7],
    ['input_url', undefined],
    ['input_url', null],
    ['input_url', ''],
    ['input_url', 'no address'],
    ['input_url', 'ftp://files.example.com/a'],
    ['input_url', 'file:///etc/passwd'],
    ['input_url', 'https://10.0.0.1/a'],
    ['input_url', 'https://user:password@files.example.com/a'],
    ['input_url', 'https://files.example.com/\0'],
    ['input_url', 'https://files.example.com/\ud800'],
    ['input_url', ['https://files.example.com/a']],
    ['input_url', long],
    ['output_url', undefined],
    ['output_url', { url: 'https://files.example.com/a' }],
    ['input_format', undefined],
    ['input_format', 'exe'],
    ['input_format', 'MP4'],
    ['input_format', 'constructor'],
    ['output_format', undefined],
    ['output_format', true],
    ['webhook_url', 'no address'],
    ['webhook_url', 12],
    ['webhook_url', long],
  ] as const)('a %s of %j is 422 and names the field', async ([field, value]) => {
    const { status, body } = await on.call('POST', '/conversion_jobs', { body: order({ [field]: value }) });
    expect(status).toBe(422);
    expect(body).toEqual({
      error: 'validation_failed',
      message: expect.stringContaining(field),
      details: [{ field, message: expect.any(String) }],
    });
  });

  test('every fault is told at once, unknown fields among them', async () => {
    const body = {
      ...order({ input_url: 7, output_format: 'exe' }),
      priority: 1,
      'a/b': 2,
      ['__proto__']: 3,
    };
    const reply = await on.call('POST', '/conversion_jobs', { body });
    expect(reply.status).toBe(422);
    expect(reply.body['details']).toEqual(
      expect.arrayContaining([
        { field: 'input_url', message: 'must be a string' },
        { field: 'output_format', message: expect.stringContaining('must be one of mp4') },
        { field: 'priority', message: 'is not known' },
        { field: 'a/b', message: 'is not known' },
      ]),
    );
  });

  test('a body of nothing but unknown fields gets an answer of bounded size', async () => {
    const body = Object.fromEntries(
      Array.from({ length: 2_000 }, (_, index) => [`${'x'.repeat(20)}${index}`, 1]),
    );
    const reply = await on.call('POST', '/conversion_jobs', { body });
    expect(reply.status).toBe(422);
    expect(JSON.stringify(reply.body).length).toBeLessThan(8_000);
  });

  test.for([
    ['a list', '[]'],
    ['text', '"video"'],
    ['null', 'null'],
    ['a number', '12'],
  ] as const)('%s is JSON but no job: 422', async ([, body]) => {
    const reply = await on.call('POST', '/conversion_jobs', { body });
    expect(reply).toMatchObject({ status: 422, body: { error: 'validation_failed' } });
  });

  test.for([
    ['nothing', ''],
    ['half of it', '{"job_type":'],
    ['a comma too many', '{"job_type":"video",}'],
    ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['a byte order mark', '\ufeff{}'],
    ['a form', 'job_type=video'],
  ] as const)('%s is not JSON: 400', async ([, body]) => {
    const reply = await on.call('POST', '/conversion_jobs', { body });
    expect(reply).toMatchObject({ status: 400, body: { error: 'bad_request' } });
  });

  test('hostile depth is no fault of ours', async () => {
    const body = `${'['.repeat(30_000)}${']'.repeat(30_000)}`;
    expect(await on.call('POST', '/conversion_jobs', { body })).toMatchObject({ status: 422 });
  });

  test('64 KiB are read, a byte more is 413, with or without a length', async () => {
    const room = 64 * 1024 - JSON.stringify({ x: '' }).length;
    expect(await on.call('POST', '/conversion_jobs', { body: ofSize(room) })).toMatchObject({ status: 422 });
    expect(await on.call('POST', '/conversion_jobs', { body: ofSize(room + 1) })).toMatchObject({
      status: 413,
      body: { error: 'payload_too_large' },
    });
    const chunked = await fetch(`${on.url}/conversion_jobs`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${on.token}`, 'Content-Type': 'application/json' },
      body: new Blob([ofSize(room + 1)]).stream(),
      duplex: 'half',
    });
    expect({ status: chunked.status, body: await chunked.json() }).toMatchObject({
      status: 413,
      body: { error: 'payload_too_large' },
    });
  });

  test.for([
    ['text/plain', {}],
    ['application/x-www-form-urlencoded', {}],
    ['application/json; charset=latin1', {}],
    ['application/json', { 'Content-Encoding': 'gzip' }],
  ] as const)('a body of %s with %j is 415', async ([type, headers]) => {
    const reply = await on.call('POST', '/conversion_jobs', {
      body: JSON.stringify(order()),
      headers: { 'Content-Type': type, ...headers },
    });
    expect(reply).toMatchObject({ status: 415, body: { error: 'unsupported_media_type' } });
  });

  test('no Content-Type at all is 415', async () => {
    const reply = await on.call('POST', '/conversion_jobs');
    expect(reply).toMatchObject({ status: 415, body: { error: 'unsupported_media_type' } });
  });
});

describe('GET /conversion_jobs/{job_id}', () => {
  test('gives the record as it was created', async () => {
    const job = await createJob(on, { input_url: `${NOWHERE}/a` });
    const { status, body } = await on.call('GET', `/conversion_jobs/${job.job_id}`);
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual(Object.keys(job));
    expect(body).toMatchObject({ job_id: job.job_id, created_at: job.created_at, input_url: job.input_url });
  });

  test.for(['job_aaaaaaaaaaaaaaaaaaaaaaaa', 'x', '%00', '%2e%2e', "'--", 'x'.repeat(3_000)])(
    '%s is no job: 404',
    async (id) => {
      const reply = await on.call('GET', `/conversion_jobs/${id}`);
      expect(reply).toMatchObject({ status: 404, body: { error: 'not_found' } });
    },
  );

  test('a job of another account is none', async () => {
    const { job_id: jobId } = await createJob(on);
    const token = newToken(on.sandbox, { account: on.sandbox.accounts.open('another') });
    expect(await on.call('GET', `/conversion_jobs/${jobId}`, { token })).toMatchObject({
      status: 404,
      body: { error: 'not_found' },
    });
  });

  test('a path that cannot be decoded is 400', async () => {
    expect(await on.call('GET', '/conversion_jobs/%zz')).toMatchObject({
      status: 400,
      body: { error: 'bad_request' },
    });
  });
});

describe('GET /conversion_jobs', () => {
  test('an account without jobs has an empty page and no cursor', async () => {
    expect((await list('', accountOf('without jobs'))).body).toEqual({ jobs: [], next_cursor: null });
  });

  test('pages give each job once, the newest first, while new ones are made', async () => {
    const token = accountOf('with jobs');
    const make = async () => {
      const { body } = await on.call<Job>('POST', '/conversion_jobs', { body: order(), token });
      return body.job_id;
    };
    const made: string[] = [];
    for (let count = 0; count < 7; count++) made.unshift(await make());

    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const { body } = await list(`?limit=3${cursor === null ? '' : `&cursor=${cursor}`}`, token);
      seen.push(...body.jobs.map(({ job_id: jobId }) => jobId));
      cursor = body.next_cursor;
      await make();
    } while (cursor !== null);
    expect(seen).toEqual(made);
  });

  test('a page holds 20 jobs unless told otherwise, and 100 at most', async () => {
    const token = accountOf('with many jobs');
    for (let count = 0; count < 21; count++)
      await on.call('POST', '/conversion_jobs', { body: order(), token });
    expect((await list('', token)).body.jobs).toHaveLength(20);
    const all = await list('?limit=100', token);
    expect(all.body.jobs).toHaveLength(21);
    expect(all.body.next_cursor).toBeNull();
    expect((await list('?limit=21', token)).body.next_cursor).toBeNull();
  });

  test('a status chooses the jobs that have it', async () => {
    const token = accountOf('with failed jobs');
    await on.call('POST', '/conversion_jobs', { body: order(), token });
    await expect.poll(async () => (await list('?status=failed', token)).body.jobs.length).toBe(1);
    expect((await list('?status=completed', token)).body.jobs).toEqual([]);
    expect((await list('?status=processing', token)).body.jobs).toEqual([]);
  });

  test.for([
    ['?status=done', 'status'],
    ['?status=', 'status'],
    ['?status=failed&status=failed', 'status'],
    ['?limit=0', 'limit'],
    ['?limit=101', 'limit'],
    ['?limit=-1', 'limit'],
    ['?limit=1.5', 'limit'],
    ['?limit=1e1', 'limit'],
    ['?limit=', 'limit'],
    ['?limit=%00', 'limit'],
    ['?limit=1&limit=2', 'limit'],
    ['?cursor=rubbish', 'cursor'],
    ['?cursor=%00', 'cursor'],
    ['?cursor=', 'cursor'],
    ['?cursor=am9iczox&cursor=am9iczox', 'cursor'],
    [`?cursor=${Buffer.from('jobs:-1').toString('base64url')}`, 'cursor'],
    [`?cursor=${Buffer.from('jobs:1 or 1=1').toString('base64url')}`, 'cursor'],
    [`?cursor=${Buffer.from('deliveries:x').toString('base64url')}`, 'cursor'],
    [`?cursor=${'x'.repeat(5_000)}`, 'cursor'],
    ['?page=2', 'page'],
    ['?__proto__=2', '__proto__'],
  ] as const)('%s is 422 and names %s', async ([query, field]) => {
    const reply = await list(query);
    expect(reply).toMatchObject({
      status: 422,
      body: { error: 'validation_failed', details: [{ field, message: expect.any(String) }] },
    });
  });
});

describe('GET /me', () => {
  test('tells the account, the token, its limits and the engine', async () => {
    const account = on.sandbox.accounts.change(on.sandbox.accounts.open('of me'), { tier: 'basic' });
    const token = newToken(on.sandbox, {
      account,
      name: 'the token of me',
      environment: 'live',
      scopes: ['jobs:read'],
      expiresAt: '2999-01-01T00:00:00.000Z',
    });
    await on.call('GET', '/me', { token });
    expect((await on.call('GET', '/me', { token })).body).toEqual({
      account_id: account.id,
      name: 'of me',
      tier: 'basic',
      environment: 'live',
      token: {
        name: 'the token of me',
        scopes: ['jobs:read'],
        expires_at: '2999-01-01T00:00:00.000Z',
        last_used_at: expect.stringMatching(/Z$/),
      },
      rate_limit: { requests_per_hour: 1_000, burst_per_minute: 50 },
      engine: { kind: 'simulated', version: expect.any(String) },
      sandbox: true,
    });
  });

  test('needs no scope, and tells of no hourly limit where there is none', async () => {
    const token = newToken(on.sandbox, { scopes: [] });
    expect(await on.call('GET', '/me', { token })).toMatchObject({
      status: 200,
      body: { tier: 'enterprise', environment: 'test', rate_limit: { requests_per_hour: null } },
    });
  });
});

describe('whatever comes', () => {
  test('as a body is taken or refused, and never our fault', async () => {
    const field = fc.oneof(
      fc.jsonValue(),
      fc.webPath().map((path) => `${NOWHERE}${path}`),
      fc.string({ unit: 'binary' }),
    );
    const fields = fc.record(
      Object.fromEntries([...Object.keys(order()), 'webhook_url'].map((name) => [name, field])),
      { requiredKeys: [] },
    );
    const body = fc.oneof(
      fields.map((value) => JSON.stringify({ ...order(), ...value })),
      fc.json(),
      fc.string({ unit: 'binary' }),
      fc.uint8Array(),
    );
    await fc.assert(
      fc.asyncProperty(body, async (content) => {
        const reply = await on.call('POST', '/conversion_jobs', { body: content });
        expect([201, 400, 422]).toContain(reply.status);
      }),
      { numRuns: 300 },
    );
  });

  test('as a parameter is taken or refused, and never our fault', async () => {
    const name = fc.oneof(
      fc.constantFrom('status', 'limit', 'cursor', 'job_id'),
      fc.string({ unit: 'grapheme' }),
    );
    const value = fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer().map(String), fc.base64String());
    const query = fc.array(fc.tuple(name, value), { maxLength: 4 });
    const path = fc.constantFrom('/conversion_jobs', '/webhook_deliveries');
    await fc.assert(
      fc.asyncProperty(path, query, async (where, pairs) => {
        const reply = await on.call('GET', `${where}?${new URLSearchParams(pairs).toString()}`);
        expect([200, 422]).toContain(reply.status);
      }),
      { numRuns: 300 },
    );
  });
});

describe('any address', () => {
  test.for([
    ['PUT', '/conversion_jobs', 'GET, HEAD, POST'],
    ['OPTIONS', '/conversion_jobs', 'GET, HEAD, POST'],
    ['DELETE', '/conversion_jobs/job_1', 'GET, HEAD'],
    ['POST', '/me', 'GET, HEAD'],
    ['POST', '/webhook_deliveries', 'GET, HEAD'],
    ['PATCH', '/webhook_deliveries/whd_1', 'GET, HEAD'],
    ['GET', '/webhook_deliveries/whd_1/redeliver', 'POST'],
  ] as const)('%s %s is 405, and Allow says what it takes', async ([method, path, allowed]) => {
    const { status, body, headers } = await on.call(method, path);
    expect({ status, error: body['error'] }).toEqual({ status: 405, error: 'method_not_allowed' });
    expect(headers.get('allow')).toBe(allowed);
  });

  test.for(['/', '/ME', '/me/', '/jobs', '/conversion_jobs/', '/conversion_jobs/a/b', '/../v2/me', '//me'])(
    '%s does not exist: 404',
    async (path) => {
      expect(await on.call('GET', path)).toMatchObject({ status: 404, body: { error: 'not_found' } });
    },
  );

  test('HEAD is GET without the body', async () => {
    const { status, headers } = await on.call('HEAD', '/me');
    expect(status).toBe(200);
    expect(Number(headers.get('content-length'))).toBeGreaterThan(100);
  });

  test('what is unknown is hidden from whoever has no token', async () => {
    expect(await ask(on.url, 'GET', '/nothing')).toMatchObject({ status: 401 });
  });

  test('one line a request is logged, with the route and without anything that the client wrote', async () => {
    await on.call('GET', '/conversion_jobs?cursor=a-secret-cursor');
    await on.call('GET', '/a-secret-path');
    await expect.poll(() => on.log.filter(({ msg }) => msg === 'request').length).toBeGreaterThan(2);
    expect(on.log.find(({ route }) => route === '/v1/conversion_jobs')).toMatchObject({
      method: expect.any(String),
      status: expect.any(Number),
      account: expect.stringMatching(/^acct_/),
      token: expect.stringMatching(/^tok_/),
    });
    expect(JSON.stringify(on.log)).not.toContain('a-secret');
  });

  test('the version of the program is not told to strangers', async () => {
    const { headers } = await ask(on.url, 'GET', '/me');
    expect(headers.get('x-powered-by')).toBeNull();
    expect(JSON.stringify([...headers])).not.toContain(version);
  });
});
