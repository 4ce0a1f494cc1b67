// The dashboard's pages for the account, its webhook settings and its tokens, over real sockets, and what all pages load.

import { describe, expect, test } from 'vitest';
import { TIERS } from '../../../src/sandbox/accounts/tiers.ts';
import { codeOf, newKey, seen, signedIn, visitor } from '../../support/dashboard.ts';
import { hang, startReceiver } from '../../support/receiver.ts';
import {
  createJob,
  newToken,
  startTestFiles,
  startTestSandbox,
  type TestSandbox,
  untilEnded,
} from '../../support/sandbox.ts';
import { waitFor } from '../../support/waits.ts';

const tokensOf = ({ sandbox: { accounts } }: TestSandbox) => accounts.tokens(accounts.open('default').id);

const defaultOf = ({ sandbox: { accounts } }: TestSandbox) => accounts.open('default');

describe('tokens', () => {
  const NEW = { name: 'nightly', environment: 'test', scopes: ['jobs:read', 'jobs:write'] } as const;

  test('one is created with what the form says, and its value is shown once', async () => {
    await using on = await startTestSandbox();
    const visiting = await signedIn(on.sandbox);
    const created = await visiting.post('/tokens', { ...NEW, expires: '2099-01-31' });
    expect(created.status).toBe(200);
    const value = /cvs_test_[\w-]{43}/.exec(created.text)?.[0] ?? '';
    expect(tokensOf(on)).toContainEqual(
      expect.objectContaining({ ...NEW, expiresAt: '2099-01-31T00:00:00.000Z' }),
    );
    expect(await on.call('GET', '/me', { token: value })).toMatchObject({ status: 200 });
    const page = await visiting.get('/tokens');
    expect(page.text).not.toContain(value);
    expect(seen(page)).toContain('nightly valid test jobs:read, jobs:write 2099-01-31 00:00:00 UTC');
    expect(JSON.stringify(on.log)).not.toContain(value);
  });

  test('without a date it never expires, and the form proposes all scopes', async () => {
    await using on = await startTestSandbox();
    const visiting = await signedIn(on.sandbox);
    const { text } = await visiting.get('/tokens');
    expect(text.match(/name="scopes" value="[^"]+" checked/g)).toHaveLength(4);
    await visiting.post('/tokens', { ...NEW, expires: '' });
    expect(tokensOf(on)).toContainEqual(expect.objectContaining({ name: 'nightly', expiresAt: null }));
  });

  test('a form that is sent twice creates one, and says so', async () => {
    await using on = await startTestSandbox();
    const visiting = await signedIn(on.sandbox);
    const form = { ...NEW, key: newKey() };
    const [first, second] = await Promise.all([
      visiting.post('/tokens', form),
      visiting.post('/tokens', form),
    ]);
    expect([first, second].filter(({ text }) => /cvs_test_/.test(text))).toHaveLength(1);
    expect([first, second].filter((each) => seen(each).includes('This form was sent before'))).toHaveLength(
      1,
    );
    expect(tokensOf(on).filter(({ name }) => name === 'nightly')).toHaveLength(1);
    const without = await visiting.post('/tokens', { ...NEW, key: '' });
    expect(without).toMatchObject({ status: 400, text: expect.stringContaining('The form has no key') });
  });

  test.for([
    [{ name: '' }, 'The name takes 1 to 100 printable characters'],
    [{ name: 'x'.repeat(101) }, 'The name takes 1 to 100'],
    [{ name: 'turned \u202Earound' }, 'The name takes 1 to 100 printable characters'],
    [{ scopes: [] }, 'A token needs one scope at least'],
    [{ scopes: ['all'] }, 'A token needs one scope at least'],
    [{ expires: '2020-01-01' }, 'The expiry takes a time that is still to come'],
    [{ expires: '2099-02-31' }, 'The expiry takes a time in ISO 8601'],
    [{ expires: 'soon' }, 'The expiry takes a time in ISO 8601'],
  ] as const)('%j is refused in words, with the form as it was', async ([change, words]) => {
    await using on = await startTestSandbox();
    const visiting = await signedIn(on.sandbox);
    const before = tokensOf(on);
    const refused = await visiting.post('/tokens', { ...NEW, ...change });
    expect(refused.status).toBe(422);
    expect(seen(refused)).toContain(words);
    const name = 'name' in change ? change.name : NEW.name;
    expect(refused.text).toContain(`value="${name}"`);
    expect(tokensOf(on)).toEqual(before);
  });

  test('one is revoked at a press, and never that of another account', async () => {
    await using on = await startTestSandbox();
    const visiting = await signedIn(on.sandbox);
    const value = newToken(on.sandbox, { name: 'leaked' });
    const id = tokensOf(on).find(({ name }) => name === 'leaked')?.id;
    const stranger = await signedIn(on.sandbox, 'another');
    expect(await stranger.post(`/tokens/${id}/revoke`)).toMatchObject({ status: 404 });
    expect(await on.call('GET', '/me', { token: value })).toMatchObject({ status: 200 });
    const { status, location } = await visiting.post(`/tokens/${id}/revoke`);
    expect({ status, location }).toEqual({ status: 303, location: '/dashboard/tokens?done=revoked' });
    expect(await on.call('GET', '/me', { token: value })).toMatchObject({ status: 401 });
    const page = await visiting.get('/tokens?done=revoked');
    expect(seen(page)).toContain('The token is revoked.');
    expect(seen(page)).toContain('leaked revoked');
    expect(page.text).not.toContain(`/tokens/${id}/revoke`);
  });

  test('many are on several pages', async () => {
    await using on = await startTestSandbox();
    const visiting = await signedIn(on.sandbox);
    for (let count = 0; count < 30; count++) newToken(on.sandbox, { name: `number ${count}` });
    const first = await visiting.get('/tokens');
    expect(first.text.match(/\/revoke"/g)).toHaveLength(25);
    expect(first.text).toContain('/dashboard/tokens?from=25');
    expect((await visiting.get('/tokens?from=25')).text.match(/\/revoke"/g)).toHaveLength(6);
  });
});

describe('webhook settings', () => {
  const SETTINGS = {
    url: 'https://relay.example.com/webhooks',
    events: ['completed', 'failed'],
    attempts: '3',
    first: '0.25',
    factor: '1.5',
    longest: '60',
    timeout: '2.5',
  } as const;

  test('are saved as they were given, and shown so', async () => {
    await using on = await startTestSandbox();
    const visiting = await signedIn(on.sandbox);
    expect(await visiting.post('/webhooks', SETTINGS)).toMatchObject({
      status: 303,
      location: '/dashboard/webhooks?done=saved',
    });
    expect(defaultOf(on)).toMatchObject({
      webhookUrl: SETTINGS.url,
      eventKinds: ['completed', 'failed'],
      maxAttempts: 3,
      retryFirstMs: 250,
      retryFactor: 1.5,
      retryMaxMs: 60_000,
      timeoutMs: 2_500,
    });
    const page = await visiting.get('/webhooks?done=saved');
    for (const value of [SETTINGS.url, '3', '0.25', '1.5', '60', '2.5']) {
      expect(page.text).toContain(`value="${value}"`);
    }
    expect(seen(page)).toContain('3 attempts, with waits of at most 0.25 s, 0.375 s. A receiver has 2.5 s');

    await visiting.post('/webhooks', {
      attempts: '1',
      url: '',
      first: '',
      factor: '',
      longest: '',
      timeout: '',
    });
    expect(defaultOf(on)).toMatchObject({
      webhookUrl: null,
      eventKinds: [],
      maxAttempts: 1,
      retryFirstMs: null,
      retryFactor: null,
      retryMaxMs: null,
      timeoutMs: null,
    });
    expect(seen(await visiting.get('/webhooks'))).toContain('one attempt, and no retry. A receiver has 10 s');
  });

  test.for([
    [{ url: 'ftp://relay.example.com' }, 'The default address must be an absolute'],
    [{ url: 'javascript:alert(1)' }, 'The default address must be an absolute'],
    [{ attempts: '21' }, 'The number of attempts is a number from 1 to 20'],
    [{ attempts: '' }, 'The number of attempts is a number from 1 to 20'],
    [{ first: '0' }, 'The first wait is a number from 0.001 to 86,400 s'],
    [{ first: '-1' }, 'The first wait is a number'],
    [{ factor: '0.9' }, 'The factor is a number from 1 to 10'],
    [{ longest: '1e3' }, 'The longest wait is a number'],
    [{ timeout: '10.001' }, 'The time-out is a number from 0.1 to 10 s'],
  ] as const)('%j is refused in words, and changes nothing', async ([change, words]) => {
    await using on = await startTestSandbox();
    const visiting = await signedIn(on.sandbox);
    const before = defaultOf(on);
    const refused = await visiting.post('/webhooks', { ...SETTINGS, ...change });
    expect(refused.status).toBe(422);
    expect(seen(refused)).toContain(words);
    expect(defaultOf(on)).toEqual(before);
  });

  test('decide what is sent where, how often, and how long a receiver has', async () => {
    await using receiver = await startReceiver(hang);
    await using files = await startTestFiles();
    await using on = await startTestSandbox();
    const visiting = await signedIn(on.sandbox);
    const settings = {
      url: receiver.url,
      events: 'completed',
      attempts: '3',
      first: '0.01',
      factor: '1',
      longest: '0.01',
    };
    await visiting.post('/webhooks', { ...settings, timeout: '0.1' });
    const job = await createJob(on, { input_url: files.input, output_url: files.output('out.webm') });
    await untilEnded(on, job.job_id);
    const delivery = await waitFor(async () => {
      const { body } = await on.call<{ webhook_deliveries: { state: string; attempts: unknown[] }[] }>(
        'GET',
        '/webhook_deliveries',
      );
      const [first] = body.webhook_deliveries;
      expect(first?.state).toBe('given_up');
      return body;
    });
    expect(delivery).toMatchObject({
      webhook_deliveries: [
        { event: 'completed', attempts: [{ error: 'timeout' }, { error: 'timeout' }, { error: 'timeout' }] },
      ],
    });
  });

  test('an address that this sandbox does not send to is marked', async () => {
    await using on = await startTestSandbox({ allowLocal: false });
    const visiting = await signedIn(on.sandbox);
    await visiting.post('/webhooks', { ...SETTINGS, url: 'http://127.0.0.1:8080/webhooks' });
    expect(seen(await visiting.get('/webhooks'))).toContain(
      'This sandbox does not send to the saved address',
    );
  });
});

describe('the signing secret', () => {
  test('is shown at a press alone, and replaced at another', async () => {
    await using on = await startTestSandbox();
    const { accounts } = on.sandbox;
    const visiting = await signedIn(on.sandbox);
    const secret = accounts.signingSecret(defaultOf(on).id);
    for (const path of ['', '/jobs', '/jobs/new', '/deliveries', '/webhooks', '/tokens']) {
      expect((await visiting.get(path)).text).not.toContain(secret);
    }
    expect((await visiting.post('/webhooks/secret')).text).toContain(secret);
    expect(await visiting.get('/webhooks/secret')).toMatchObject({
      status: 303,
      location: '/dashboard/webhooks#secret',
    });

    const form = { key: newKey() };
    const replaced = await visiting.post('/webhooks/secret/rotate', form);
    expect(replaced).toMatchObject({ status: 303, location: '/dashboard/webhooks?done=rotated#secret' });
    const next = accounts.signingSecret(defaultOf(on).id);
    expect(next).toMatch(/^[\w-]{43}$/);
    expect(next).not.toBe(secret);
    await visiting.post('/webhooks/secret/rotate', form);
    expect(accounts.signingSecret(defaultOf(on).id)).toBe(next);
    const page = await visiting.get('/webhooks?done=rotated');
    expect(seen(page)).toContain('There is a new signing secret.');
    expect(page.text).not.toContain(next);
    expect(JSON.stringify(on.log)).not.toContain(next);
  });
});

describe('the overview', () => {
  test('shows the tier, what each token has used of its limits, and the latest jobs', async () => {
    await using on = await startTestSandbox({ tiers: TIERS });
    const visiting = await signedIn(on.sandbox);
    await visiting.post('/tier', { tier: 'basic' });
    expect(defaultOf(on).tier).toBe('basic');
    for (let count = 0; count < 3; count++) await on.call('GET', '/me');
    const job = await createJob(on);
    const page = await visiting.get('?done=tier');
    expect(seen(page)).toContain('The tier is changed.');
    expect(seen(page)).toContain('1,000 requests an hour, and 50 a minute');
    expect(seen(page)).toMatch(/a test 4 of 50 for \d+ s 4 of 1,000 for 60 min/);
    expect(page.text).toContain(`href="/dashboard/jobs/${job.job_id}"`);
    // To look takes nothing.
    expect(seen(await visiting.get(''))).toContain('4 of 50');

    await visiting.post('/tier', { tier: 'enterprise' });
    await on.call('GET', '/me');
    expect(seen(await visiting.get(''))).toMatch(/a test 1 of 1,000 for \d+ s no limit/);
    expect(await visiting.post('/tier', { tier: 'gold' })).toMatchObject({ status: 422 });
    expect(defaultOf(on).tier).toBe('enterprise');
  });

  test('without tokens and jobs says what makes some', async () => {
    await using on = await startTestSandbox();
    const page = seen(await (await signedIn(on.sandbox, 'empty')).get(''));
    expect(page).toContain('The account has no valid token. Create one');
    expect(page).toContain('No jobs so far.');
  });
});

test('what the dashboard needs is served from its own address, kept for good, and needs no session', async () => {
  await using on = await startTestSandbox();
  const page = await visitor(on.sandbox).get('/sign-in');
  const addresses = Array.from(
    page.text.matchAll(/(?:href|src)="(\/dashboard\/assets\/[^"]+)"/g),
    ([, found]) => found,
  );
  expect(new Set(addresses.map((address) => address?.split('/').at(-1)))).toEqual(
    new Set(['base.css', 'dashboard.css', 'dashboard.js', 'icon.svg']),
  );
  for (const address of addresses) {
    const { status, headers } = await visitor(on.sandbox).get(address?.replace('/dashboard', '') ?? '');
    expect(status).toBe(200);
    expect(headers.get('cache-control')).toContain('immutable');
  }
  expect(page.headers.get('cache-control')).toBe('no-store');
  expect(codeOf(on.sandbox.newSignIn(defaultOf(on)))).toMatch(/^[\w-]{43}$/);
});
