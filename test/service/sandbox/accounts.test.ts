// Tokens and their scopes: every row of the interface's table of errors for 401 and 403, and that no secret leaks.

import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { SCOPES, type Scope } from '../../../src/sandbox/accounts/tokens.ts';
import { createFolder } from '../../support/folder.ts';
import { startReceiver } from '../../support/receiver.ts';
import {
  ask,
  createJob,
  newToken,
  order,
  startTestFiles,
  startTestSandbox,
  untilEnded,
} from '../../support/sandbox.ts';

const INVALID = { status: 401, body: { error: 'unauthorized', message: 'invalid or expired API token' } };
const MISSING = { status: 401, body: { error: 'unauthorized', message: 'Authorization header required' } };
const FORBIDDEN = {
  status: 403,
  body: { error: 'forbidden', message: 'insufficient permissions for this resource' },
};

describe('401', () => {
  test('no Authorization header: it is required', async () => {
    await using on = await startTestSandbox();
    const reply = await ask(on.url, 'GET', '/me');
    expect(reply).toMatchObject(MISSING);
    expect(reply.body).toEqual(MISSING.body);
    expect(reply.headers.get('www-authenticate')).toBe('Bearer');
  });

  test('whatever is no valid token, or lacks the Bearer prefix, is invalid', async () => {
    await using on = await startTestSandbox();
    const other = `${on.token.slice(0, -1)}${on.token.endsWith('A') ? 'B' : 'A'}`;
    const headers = [
      on.token,
      `Basic ${on.token}`,
      `Bearer`,
      `Bearer ${other}`,
      `Bearer ${on.token}x`,
      `Bearer ${on.token.slice(0, -1)}`,
      `Bearer ${on.token} ${on.token}`,
      `Bearer ${on.token}, Bearer ${on.token}`,
      `Bearer ${on.token.replace('cvs_test', 'cvs_live')}`,
      `Bearer ${on.token.toUpperCase()}`,
      `Bearer cvs_live_${'x'.repeat(10_000)}`,
      `Bearer ' or 1=1 --`,
    ];
    for (const Authorization of headers) {
      const reply = await ask(on.url, 'GET', '/me', { headers: { Authorization } });
      expect({ Authorization, ...reply }).toMatchObject(INVALID);
    }
    expect(await ask(on.url, 'GET', '/me', { token: on.token })).toMatchObject({ status: 200 });
  });

  test('the case of Bearer does not matter', async () => {
    await using on = await startTestSandbox();
    const headers = { Authorization: `bearer ${on.token}` };
    expect(await ask(on.url, 'GET', '/me', { headers })).toMatchObject({ status: 200 });
  });

  test('a token works until it expires, and not after', async () => {
    await using on = await startTestSandbox();
    const ending = newToken(on.sandbox, { expiresAt: new Date(Date.now() + 400).toISOString() });
    expect(await on.call('GET', '/me', { token: ending })).toMatchObject({ status: 200 });
    await expect.poll(async () => (await on.call('GET', '/me', { token: ending })).status).toBe(401);
    expect(await on.call('GET', '/me', { token: ending })).toMatchObject(INVALID);
  });

  test('a token that is revoked works no longer, and can be revoked but once', async () => {
    await using on = await startTestSandbox();
    const { accounts } = on.sandbox;
    const token = newToken(on.sandbox, { name: 'to be revoked' });
    const found = accounts.tokens(accounts.open('default').id).find(({ name }) => name === 'to be revoked');
    expect(await on.call('GET', '/me', { token })).toMatchObject({ status: 200 });
    expect(accounts.revokeToken(found?.id ?? '')).toBe(true);
    expect(await on.call('GET', '/me', { token })).toMatchObject(INVALID);
    expect(accounts.revokeToken(found?.id ?? '')).toBe(false);
  });
});

describe('403', () => {
  const NEEDED: readonly (readonly [string, string, Scope])[] = [
    ['POST', '/conversion_jobs', 'jobs:write'],
    ['GET', '/conversion_jobs', 'jobs:read'],
    ['GET', '/conversion_jobs/job_1', 'jobs:read'],
    ['GET', '/webhook_deliveries', 'webhooks:read'],
    ['GET', '/webhook_deliveries/whd_1', 'webhooks:read'],
    ['POST', '/webhook_deliveries/whd_1/redeliver', 'webhooks:write'],
  ];

  test('every address needs its own scope, and no other opens it', async () => {
    await using on = await startTestSandbox();
    for (const [method, path, scope] of NEEDED) {
      const others = newToken(on.sandbox, { scopes: SCOPES.filter((other) => other !== scope) });
      const reply = await on.call(method, path, { token: others });
      expect({ method, path, ...reply }).toMatchObject(FORBIDDEN);
      expect(reply.body['details']).toEqual([{ field: 'scope', message: `the token lacks ${scope}` }]);
      const right = newToken(on.sandbox, { scopes: [scope] });
      expect([200, 404, 415]).toContain((await on.call(method, path, { token: right })).status);
    }
  });

  test('the tier Free may use mp4, webm, mp3 and gif, and no other format', async () => {
    await using on = await startTestSandbox();
    const { accounts } = on.sandbox;
    const token = newToken(on.sandbox, { account: accounts.change(accounts.open('free'), { tier: 'free' }) });
    const post = (body: object) => on.call('POST', '/conversion_jobs', { token, body });

    expect(await post(order({ input_format: 'gif', output_format: 'mp3' }))).toMatchObject({ status: 201 });
    for (const [field, format] of [
      ['input_format', 'mkv'],
      ['output_format', 'wav'],
    ] as const) {
      const reply = await post(order({ [field]: format }));
      expect(reply).toMatchObject(FORBIDDEN);
      expect(reply.body['details']).toEqual([{ field, message: expect.stringContaining('mp4, webm') }]);
    }
    accounts.change(accounts.open('free'), { tier: 'basic' });
    expect(await post(order({ input_format: 'mkv' }))).toMatchObject({ status: 201 });
  });
});

describe('a token', () => {
  test('has a prefix that tells live from test, and 256 random bits', async () => {
    await using on = await startTestSandbox();
    expect(newToken(on.sandbox, { environment: 'live' })).toMatch(/^cvs_live_[\w-]{43}$/);
    expect(newToken(on.sandbox, { environment: 'test' })).toMatch(/^cvs_test_[\w-]{43}$/);
    expect(newToken(on.sandbox)).not.toBe(newToken(on.sandbox));
  });

  test('knows when it was last used', async () => {
    await using on = await startTestSandbox();
    const { accounts } = on.sandbox;
    const token = newToken(on.sandbox, { name: 'of use' });
    const lastUse = () =>
      accounts.tokens(accounts.open('default').id).find(({ name }) => name === 'of use')?.lastUsedAt ?? null;
    expect(lastUse()).toBeNull();
    const beforeMs = Date.now();
    await on.call('GET', '/me', { token });
    const first = Date.parse(lastUse() ?? '');
    expect(first).toBeGreaterThanOrEqual(beforeMs);
    await expect
      .poll(async () => {
        await on.call('GET', '/me', { token });
        return Date.parse(lastUse() ?? '');
      })
      .toBeGreaterThan(first);
  });
});

describe('secrets', () => {
  test('neither a token nor a signing secret is in the log, in an answer, or in a webhook; a token is not even in the data file', async () => {
    await using folder = await createFolder();
    await using files = await startTestFiles();
    await using receiver = await startReceiver();
    const data = folder.path('sandbox.db');
    const on = await startTestSandbox({ data });
    const answers: unknown[] = [];
    const keep = async (method: string, path: string, call: object = {}) => {
      const reply = await on.call(method, path, call);
      answers.push(reply.body, [...reply.headers]);
    };
    const secret = on.sandbox.accounts.signingSecret(on.sandbox.accounts.open('default').id);
    const { token } = on;
    const job = await createJob(on, {
      input_url: files.input,
      output_url: files.output('secret.webm'),
      webhook_url: receiver.url,
    });
    await untilEnded(on, job.job_id);
    await receiver.untilReceived(1);
    for (const path of [
      '/me',
      '/conversion_jobs',
      '/webhook_deliveries',
      `/nothing/${token}`,
      `/me?token=${token}`,
    ]) {
      await keep('GET', path);
    }
    await keep('POST', '/conversion_jobs', { body: { [token]: secret, job_type: token } });
    await keep('GET', '/me', { headers: { Authorization: `Basic ${token}` } });
    await on.sandbox.stop();

    const stored = await Promise.all(
      (await readdir(folder.path('.'))).map((name) => readFile(folder.path(name), 'latin1')),
    );
    const told = JSON.stringify([
      on.log,
      receiver.received.map(({ rawHeaders, said }) => [rawHeaders, said]),
    ]);
    expect(told).not.toContain(token);
    expect(told).not.toContain(secret);
    expect(stored.join('')).not.toContain(token);
    expect(stored.join('')).toContain(createHash('sha256').update(token).digest().toString('latin1'));
    // The answer quotes only the beginning of an unknown field's name, and only to the client that sent it.
    const others = JSON.stringify(answers.slice(0, -4));
    expect(others).not.toContain(token);
    expect(JSON.stringify(answers)).not.toContain(secret);
  });

  test('the data file is for its owner alone', async () => {
    await using folder = await createFolder();
    const data = folder.path('own/sandbox.db');
    await using on = await startTestSandbox({ data });
    await on.call('GET', '/me');
    for (const name of ['sandbox.db', 'sandbox.db-wal', 'sandbox.db-shm']) {
      expect((await stat(folder.path(`own/${name}`))).mode & 0o077).toBe(0);
    }
  });
});
