// What the client does when it gets no answer, or none that it likes: errors, limits, retries, aborts.

import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import {
  type ClientOptions,
  createClient,
  ForbiddenError,
  InvalidRequestError,
  NoAnswerError,
  NotFoundError,
  RateLimitedError,
  ServiceError,
  UnauthorizedError,
} from '../../../src/origin/client.ts';
import { hang, startReceiver } from '../../support/receiver.ts';
import {
  ACCOUNT,
  always,
  failure,
  JOB,
  limitHeaders,
  NEW_JOB,
  reply,
  scriptedClient,
  TOKEN,
} from '../../support/scripted-service.ts';

test.each([
  [400, 'bad_request', InvalidRequestError],
  [401, 'unauthorized', UnauthorizedError],
  [403, 'forbidden', ForbiddenError],
  [404, 'not_found', NotFoundError],
  [405, 'method_not_allowed', ServiceError],
  [409, 'conflict', ServiceError],
  [422, 'validation_failed', InvalidRequestError],
] as const)('status %i is an error of its own with code %s, at once', async (status, code, kind) => {
  const details = [{ field: 'input_url', message: 'must be an https:// URL' }];
  await using service = await startReceiver(
    always(status, { error: code, message: 'what is wrong', details }, limitHeaders(1_800_000_000)),
  );

  const error = await failure(scriptedClient(service).getJob('job_1'));

  expect(error).toBeInstanceOf(kind);
  expect(error).toMatchObject({
    code,
    httpStatus: status,
    message: 'what is wrong',
    details,
    rateLimit: { limit: 10, remaining: 0, resetAtMs: 1_800_000_000_000 },
  });
  expect(service.received).toHaveLength(1);
});

test('an error in no known form still tells its status', async () => {
  await using service = await startReceiver(
    (response) => void response.writeHead(418).end('<h1>teapot</h1>'),
  );

  const error = await failure(scriptedClient(service).me());

  expect(error).toBeInstanceOf(ServiceError);
  expect(error).toMatchObject({ code: 'http_418', httpStatus: 418, rateLimit: undefined, details: [] });
});

test('a 429 is waited out until the reset, by the clock of the service, also for a creation', async () => {
  const serverNowMs = Date.UTC(2020, 0, 1); // years away from our own clock
  await using service = await startReceiver((response, _received, index) => {
    const headers = { ...limitHeaders(serverNowMs / 1_000 + 7), Date: new Date(serverNowMs).toUTCString() };
    if (index === 0) reply(response, 429, { error: 'rate_limited', message: 'rate limit exceeded' }, headers);
    else reply(response, 201, JOB);
  });
  const client = scriptedClient(service);

  expect((await client.createJob(NEW_JOB)).job_id).toBe('job_1');
  expect(client.waits).toEqual([7_000]);
});

test('where the service does not tell its time, ours counts', async () => {
  await using service = await startReceiver((response, _received, index) => {
    response.sendDate = false;
    if (index === 0) reply(response, 429, {}, limitHeaders(1_000));
    else reply(response, 200, ACCOUNT);
  });
  const client = scriptedClient(service, { now: () => 988_500 });

  await client.me();

  expect(client.waits).toEqual([11_500]);
});

test('a reset that is further away than allowed is an error at once, and tells when', async () => {
  const nowSeconds = Math.floor(Date.now() / 1_000);
  await using service = await startReceiver(
    always(429, { error: 'rate_limited', message: 'rate limit exceeded' }, limitHeaders(nowSeconds + 3_600)),
  );
  const client = scriptedClient(service);

  const error = await failure(client.me());

  expect(error).toBeInstanceOf(RateLimitedError);
  expect(error).toMatchObject({
    code: 'rate_limited',
    rateLimit: { resetAtMs: (nowSeconds + 3_600) * 1_000 },
  });
  expect(client.waits).toEqual([]);
  expect(service.received).toHaveLength(1);
});

test('a limit that never ends is given up after the last retry', async () => {
  await using service = await startReceiver(always(429, {}, limitHeaders(1)));
  const client = scriptedClient(service, { maxRetries: 3 });

  expect(await failure(client.me())).toBeInstanceOf(RateLimitedError);
  // It says that it is over each time: never less than a moment, so that nobody hammers.
  expect(client.waits).toEqual([250, 250, 250]);
  expect(service.received).toHaveLength(4);
});

test('a read is tried again after a 5xx, and a creation is not', async () => {
  await using service = await startReceiver((response, { method }, index) =>
    index < 2 || method === 'POST'
      ? reply(response, 503, { error: 'unavailable', message: 'later' })
      : reply(response, 200, JOB),
  );
  const client = scriptedClient(service);

  expect((await client.getJob('job_1')).job_id).toBe('job_1');
  expect(client.waits).toEqual([250, 500]);
  expect(await failure(client.createJob(NEW_JOB))).toMatchObject({ code: 'unavailable', httpStatus: 503 });
  expect(service.received).toHaveLength(4);
});

test('a service that is not there is an error of its own, after retries for reads alone', async () => {
  const { port } = await (async () => {
    await using gone = await startReceiver();
    return { port: gone.port };
  })();
  const client = scriptedClient({ port }, { maxRetries: 2 });

  const error = await failure(client.me());

  expect(error).toBeInstanceOf(NoAnswerError);
  expect(error).toMatchObject({ code: 'unreachable' });
  expect(client.waits).toEqual([250, 500]);
  expect(await failure(client.createJob(NEW_JOB))).toBeInstanceOf(NoAnswerError);
  expect(client.waits).toHaveLength(2);
});

test('an answer that does not come, or does not end, is too late', async () => {
  await using service = await startReceiver((response, received, index) => {
    if (index === 0) hang(response, received, index);
    else response.writeHead(200).write('{');
  });
  const client = scriptedClient(service, { timeoutMs: 150, maxRetries: 0 });

  expect(await failure(client.me())).toMatchObject({ name: 'NoAnswerError', code: 'timed_out' });
  expect(await failure(client.me())).toMatchObject({ name: 'NoAnswerError', code: 'timed_out' });
});

test('an abort ends a call under way and a wait for the limit, with the reason it was given', async () => {
  const reason = new Error('the user went home');
  await using service = await startReceiver((response, received, index) =>
    index === 0
      ? hang(response, received, index)
      : reply(response, 429, {}, limitHeaders(Math.floor(Date.now() / 1_000) + 30)),
  );
  const client = createClient({ url: `http://127.0.0.1:${service.port}/v1`, token: TOKEN });
  const call = new AbortController();
  const underWay = failure(client.createJob(NEW_JOB, { signal: call.signal }));
  await service.untilReceived(1);
  call.abort(reason);

  expect(await underWay).toBe(reason);
  const waiting = new AbortController();
  const limited = failure(client.me({ signal: waiting.signal }));
  await service.untilReceived(2);
  waiting.abort(reason);
  expect(await limited).toBe(reason);
  expect(await failure(client.me({ signal: AbortSignal.abort(reason) }))).toBe(reason);
  expect(service.received).toHaveLength(2);
});

/** As a promise, so that it fails like a call. */
const create = (options: ClientOptions) => new Promise((resolve) => resolve(createClient(options)));

test('the token is in no error, whatever goes wrong', async () => {
  await using service = await startReceiver(always(401, { error: 'unauthorized', message: 'invalid' }));
  const errors = [
    await failure(scriptedClient(service).me()),
    await failure(scriptedClient({ port: 9 }, { maxRetries: 0 }).me()),
    await failure(create({ url: 'http://127.0.0.1/v1', token: `${TOKEN}\n` })),
    await failure(create({ url: 'no address', token: TOKEN })),
  ];

  expect(errors.every((error) => error instanceof Error)).toBe(true);
  for (const error of errors) expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('pLaNtEd');
});
