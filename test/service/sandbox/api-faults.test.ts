// Internal errors and overload: 500 and 503, in the same shape and with the same headers as other errors.

import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { DEFAULT_SETTINGS } from '../../../src/sandbox/settings.ts';
import { createFolder } from '../../support/folder.ts';
import { startOrigin } from '../../support/origin.ts';
import { createJob, order, startTestSandbox } from '../../support/sandbox.ts';
import { openRaw } from '../../support/raw-http.ts';

/** Damages the data file while the sandbox runs. */
function damage(file: string, statement: string): void {
  using database = new DatabaseSync(file);
  database.exec(statement);
}

describe('500', () => {
  test.for([
    ['jobs', 'GET', '/conversion_jobs'],
    ['notices', 'GET', '/webhook_deliveries'],
    ['tokens', 'GET', '/me'],
  ] as const)('a lost table of %s is an answer that tells nothing of it', async ([table, method, path]) => {
    await using folder = await createFolder();
    const data = folder.path('sandbox.db');
    await using on = await startTestSandbox({ data });
    damage(data, `pragma foreign_keys = off; alter table ${table} rename to lost_${table}`);

    const { status, body, rate } = await on.call(method, path);
    expect({ status, body }).toEqual({
      status: 500,
      body: { error: 'internal', message: 'something went wrong on our side' },
    });
    expect(rate.limit).toBeGreaterThan(0);
    expect(on.log.find(({ msg }) => msg === 'unexpected error')).toMatchObject({
      err: { message: expect.stringContaining(`no such table: ${table}`) },
    });
    damage(data, `pragma foreign_keys = off; alter table lost_${table} rename to ${table}`);
    expect(await on.call(method, path)).toMatchObject({ status: 200 });
  });
});

describe('503', () => {
  test('no more jobs are taken than may be under way, and there is room again when one has ended', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await using origin = await startOrigin((_request, response) => {
      void released.then(() => response.writeHead(404).end());
    });
    await using on = await startTestSandbox({
      jobs: { ...DEFAULT_SETTINGS.jobs, concurrent: 1, concurrentPerAccount: 1, unended: 3 },
    });
    const fields = { input_url: `${origin.url}/input.mp4` };
    for (let count = 0; count < 3; count++) await createJob(on, fields);

    const replies = await Promise.all(
      Array.from({ length: 20 }, () => on.call('POST', '/conversion_jobs', { body: order(fields) })),
    );
    for (const { status, body, headers } of replies) {
      expect({ status, error: body['error'] }).toEqual({ status: 503, error: 'unavailable' });
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    }
    release();
    await expect
      .poll(async () => (await on.call('POST', '/conversion_jobs', { body: order(fields) })).status)
      .toBe(201);
  });
});

describe('a client that breaks off', () => {
  test('in the middle of a body gets no answer, and the next one is served', async () => {
    await using on = await startTestSandbox();
    using connection = await openRaw(on.sandbox.port);
    connection.write(
      `POST /v1/conversion_jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${on.token}\r\n` +
        'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"job_type":',
    );
    connection.reset();
    await expect.poll(() => on.log.some(({ msg }) => msg === 'request')).toBe(true);
    expect(on.log.filter(({ level }) => Number(level) >= 50)).toEqual([]);
    expect(await on.call('GET', '/me')).toMatchObject({ status: 200 });
  });

  test('when it stops, requests under way are answered, and nobody is taken any more', async () => {
    await using on = await startTestSandbox({ graceMs: 5_000 });
    using connection = await openRaw(on.sandbox.port);
    const body = JSON.stringify(order());
    connection.write(
      `POST /v1/conversion_jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${on.token}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 10)}`,
    );
    await expect
      .poll(() => on.sandbox.accounts.tokens(on.sandbox.accounts.open('default').id)[0]?.lastUsedAt)
      .not.toBeNull();
    const stopped = on.sandbox.stop();
    connection.write(body.slice(10));
    const [reply] = await connection.replies();
    expect(reply?.status).toBe(201);
    await stopped;
    await expect(fetch(`${on.url}/me`)).rejects.toThrow('fetch failed');
  });
});
