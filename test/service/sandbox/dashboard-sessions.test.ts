// Signing in to the dashboard, its sessions and their ends, and requests that other pages forge.

import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { createAccounts } from '../../../src/sandbox/accounts/accounts.ts';
import { CODE_MS, createSessions, IDLE_MS, SESSION_MS } from '../../../src/sandbox/accounts/sessions.ts';
import { SCOPES } from '../../../src/sandbox/accounts/tokens.ts';
import { TIERS } from '../../../src/sandbox/accounts/tiers.ts';
import { IN_MEMORY } from '../../../src/sandbox/store/database.ts';
import { openStore } from '../../../src/sandbox/store/store.ts';
import { codeOf, signedIn, visitor } from '../../support/dashboard.ts';
import { createFolder } from '../../support/folder.ts';
import { newToken, startTestSandbox } from '../../support/sandbox.ts';

describe('a code', () => {
  test('signs in with a press of the button, once; looking at its address uses nothing up', async () => {
    await using on = await startTestSandbox();
    const address = on.sandbox.newSignIn(on.sandbox.accounts.open('default'));
    const code = codeOf(address);
    const visiting = visitor(on.sandbox);
    for (let look = 0; look < 3; look++) {
      const { status, text } = await visiting.get(`/sign-in?code=${code}`);
      expect(status).toBe(200);
      expect(text).toContain(`<input type="hidden" name="code" value="${code}">`);
    }
    expect(visiting.cookie).toBeUndefined();
    const answer = await visiting.post('/sign-in', { code });
    expect(answer).toMatchObject({ status: 303, location: '/dashboard' });
    expect(answer.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^tallyhook_sandbox=[\w-]{43}; Path=\/dashboard; HttpOnly; SameSite=Lax$/),
    ]);
    expect(await visiting.get('')).toMatchObject({
      status: 200,
      text: expect.stringContaining('<h1>Overview'),
    });

    const again = await visitor(on.sandbox).post('/sign-in', { code });
    expect(again).toMatchObject({ status: 401, text: expect.stringContaining('was used already') });
    const unknown = await visitor(on.sandbox).post('/sign-in', { code: 'x'.repeat(43) });
    expect(unknown).toMatchObject({ status: 401, text: expect.stringContaining('is not one of ours') });
  });

  test('signs in to its own account', async () => {
    await using on = await startTestSandbox();
    const visiting = await signedIn(on.sandbox, 'another');
    expect((await visiting.get('')).text).toContain('<bdi>another</bdi>');
  });

  test('leads on to the page that was asked for, and to no other site', async () => {
    await using on = await startTestSandbox();
    const visiting = visitor(on.sandbox);
    const { status, location } = await visiting.get('/jobs?status=failed');
    expect({ status, location }).toEqual({
      status: 303,
      location: '/dashboard/sign-in?next=%2Fdashboard%2Fjobs%3Fstatus%3Dfailed',
    });
    const signIn = (next: string) => {
      const code = codeOf(on.sandbox.newSignIn(on.sandbox.accounts.open('default')));
      return visiting.post('/sign-in', { code, next });
    };
    expect(await signIn('/dashboard/jobs?status=failed')).toMatchObject({
      location: '/dashboard/jobs?status=failed',
    });
    for (const elsewhere of [
      'https://elsewhere.example/',
      '//elsewhere.example',
      '/dashboard//elsewhere\\',
      '/dashboardelsewhere',
      '/v1/me',
      'javascript:alert(1)',
    ]) {
      expect(await signIn(elsewhere)).toMatchObject({ location: '/dashboard' });
    }
  });
});

describe('a token', () => {
  test('with all scopes signs in; its session ends when it is revoked', async () => {
    await using on = await startTestSandbox();
    const { accounts } = on.sandbox;
    const visiting = visitor(on.sandbox);
    const value = newToken(on.sandbox, { name: 'of a session' });
    expect(await visiting.post('/sign-in', { token: ` ${value}\n` })).toMatchObject({ status: 303 });
    expect(await visiting.get('/tokens')).toMatchObject({ status: 200 });
    const token = accounts.tokens(accounts.open('default').id).find(({ name }) => name === 'of a session');
    expect(await visiting.post(`/tokens/${token?.id}/revoke`)).toMatchObject({ status: 303 });
    const { cookie } = visiting;
    expect(await visiting.get('/tokens')).toMatchObject({
      status: 303,
      location: '/dashboard/sign-in?next=%2Fdashboard%2Ftokens&ended=1',
    });
    expect(visiting.cookie).toBeUndefined();
    expect((await visiting.get('/sign-in?ended=1')).text).toContain('Your session has ended');
    const late = await visiting.post('/tokens', { name: 'late' }, { Cookie: cookie ?? '' });
    expect(late).toMatchObject({ status: 401, text: expect.stringContaining('Nothing was changed') });
    expect(accounts.tokens(accounts.open('default').id).map(({ name }) => name)).not.toContain('late');
  });

  test('that lacks a scope, is expired, revoked or mistyped does not', async () => {
    await using on = await startTestSandbox();
    const { accounts } = on.sandbox;
    for (const missing of SCOPES) {
      const token = newToken(on.sandbox, { scopes: SCOPES.filter((scope) => scope !== missing) });
      const answer = await visitor(on.sandbox).post('/sign-in', { token });
      expect(answer).toMatchObject({
        status: 403,
        text: expect.stringContaining('only a token with all scopes'),
      });
      expect(answer.headers.getSetCookie()).toEqual([]);
    }
    const revoked = newToken(on.sandbox, { name: 'revoked' });
    const found = accounts.tokens(accounts.open('default').id).find(({ name }) => name === 'revoked');
    accounts.revokeToken(found?.id ?? '');
    const expired = newToken(on.sandbox, { expiresAt: new Date(Date.now() - 1).toISOString() });
    for (const token of [revoked, expired, '', 'cvs_live_x', `${on.token}x`]) {
      const answer = await visitor(on.sandbox).post('/sign-in', { token });
      expect(answer).toMatchObject({ status: 401, text: expect.stringContaining('This token is not valid') });
      expect(answer.text.includes(token)).toBe(token === '');
    }
  });
});

describe('sessions', () => {
  test('end idle, after a day, and when asked to; codes end after ten minutes; only hashes are stored', () => {
    const store = openStore(IN_MEMORY);
    let nowMs = Date.UTC(2026, 0, 15);
    const now = () => nowMs;
    const accounts = createAccounts({ store: store.accounts, now });
    const sessions = createSessions({ store: store.sessions, accounts, now });
    const account = accounts.open('default');
    const begin = () => {
      const found = sessions.byCode(sessions.newCode(account));
      return 'session' in found ? found.session : '';
    };

    const late = sessions.newCode(account);
    nowMs += CODE_MS - 1;
    const timely = sessions.newCode(account);
    nowMs += 1;
    expect(sessions.byCode(late)).toEqual({ fault: 'code_expired' });
    expect(sessions.byCode(timely)).toEqual({ session: expect.stringMatching(/^[\w-]{43}$/) });

    const idle = begin();
    nowMs += IDLE_MS - 1;
    expect(sessions.find(idle)?.name).toBe('default');
    nowMs += IDLE_MS - 1;
    expect(sessions.find(idle)?.name).toBe('default');
    nowMs += IDLE_MS;
    expect(sessions.find(idle)).toBeUndefined();

    const used = begin();
    const beganMs = nowMs;
    while (nowMs + IDLE_MS / 2 < beganMs + SESSION_MS) {
      nowMs += IDLE_MS / 2;
      expect(sessions.find(used)?.name).toBe('default');
    }
    nowMs = beganMs + SESSION_MS;
    expect(sessions.find(used)).toBeUndefined();

    const ended = begin();
    sessions.end(ended);
    expect(sessions.find(ended)).toBeUndefined();
    expect(sessions.find('')).toBeUndefined();
    store.close();
  });

  test('outlive a restart of the sandbox, and no value of theirs is in its file', async () => {
    await using folder = await createFolder();
    const data = folder.path('sandbox.db');
    const first = await startTestSandbox({ data });
    const code = codeOf(first.sandbox.newSignIn(first.sandbox.accounts.open('default')));
    const before = await signedIn(first.sandbox);
    await first.sandbox.stop();
    const bytes = await readFile(data);
    const session = before.cookie?.split('=')[1] ?? '';
    expect(session).toHaveLength(43);
    expect(bytes.includes(session)).toBe(false);
    expect(bytes.includes(code)).toBe(false);
    await using second = await startTestSandbox({ data });
    const after = visitor(second.sandbox);
    after.cookie = before.cookie;
    expect(await after.get('')).toMatchObject({ status: 200 });
    expect(await after.post('/sign-in', { code })).toMatchObject({ status: 303 });
  });

  test('end with a press of Sign out', async () => {
    await using on = await startTestSandbox();
    const visiting = await signedIn(on.sandbox);
    const { cookie = '' } = visiting;
    expect(await visiting.post('/sign-out')).toMatchObject({
      status: 303,
      location: '/dashboard/sign-in?out=1',
    });
    expect(visiting.cookie).toBeUndefined();
    expect(await visiting.get('', { Cookie: cookie })).toMatchObject({ status: 303 });
  });

  test('the API ignores their cookie, and the dashboard ignores tokens', async () => {
    await using on = await startTestSandbox();
    const { cookie = '' } = await signedIn(on.sandbox);
    expect(await on.call('GET', '/me', { token: undefined, headers: { Cookie: cookie } })).toMatchObject({
      status: 401,
    });
    const answer = await visitor(on.sandbox).get('/tokens', { Authorization: `Bearer ${on.token}` });
    expect(answer).toMatchObject({ status: 303, location: expect.stringContaining('/dashboard/sign-in') });
  });

  test('guesses count for their address, and do not keep those out who have the right thing', async () => {
    await using on = await startTestSandbox({
      tiers: { ...TIERS, free: { ...TIERS.free, burstPerMinute: 1 } },
    });
    const guess = () => visitor(on.sandbox).post('/sign-in', { code: 'a guess' });
    for (let count = 0; count < 9; count++) expect((await guess()).status).toBe(401);
    const badCookie = { Cookie: 'tallyhook_sandbox=a-guess' };
    expect(await visitor(on.sandbox).get('', badCookie)).toMatchObject({ status: 303 });
    const refused = await guess();
    expect(refused).toMatchObject({ status: 429, text: expect.stringContaining('Too many attempts') });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await visitor(on.sandbox).get('', badCookie)).toMatchObject({ status: 429 });
    expect(await visitor(on.sandbox).get('/sign-in')).toMatchObject({ status: 200 });
    const visiting = await signedIn(on.sandbox);
    expect(await visiting.get('')).toMatchObject({ status: 200 });
  });
});

const ACTIONS = [
  '/sign-in',
  '/sign-out',
  '/tier',
  '/jobs/new',
  '/deliveries/whd_1/redeliver',
  '/webhooks',
  '/webhooks/secret',
  '/webhooks/secret/rotate',
  '/tokens',
  '/tokens/tok_1/revoke',
] as const;

describe('a forged request', () => {
  test.for(ACTIONS)('to %s is refused, wherever it comes from, and changes nothing', async (path) => {
    await using on = await startTestSandbox();
    const { accounts } = on.sandbox;
    const visiting = await signedIn(on.sandbox);
    const seen = () => {
      const account = accounts.open('default');
      return [account, accounts.signingSecret(account.id), accounts.tokens(account.id)];
    };
    const before = seen();
    const forged: Record<string, string>[] = [
      { Origin: 'https://elsewhere.example' },
      { Origin: 'null' },
      { Origin: '' },
      { Origin: 'http://127.0.0.1:1' },
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site' },
      { 'Sec-Fetch-Site': 'none' },
    ];
    const fields = {
      name: 'forged',
      scopes: 'jobs:read',
      tier: 'free',
      url: 'https://elsewhere.example/',
      attempts: '1',
    };
    for (const headers of forged) {
      const { status, text } = await visiting.post(path, fields, headers);
      expect({ headers, status }).toEqual({ headers, status: 403 });
      expect(text).toContain('did not come from the dashboard');
    }
    expect(seen()).toEqual(before);
    expect(await visiting.get('')).toMatchObject({ status: 200 });
  });

  test('a link in a chat opens the page; what other sites embed or fetch gets nothing', async () => {
    await using on = await startTestSandbox();
    const visiting = await signedIn(on.sandbox);
    const from = (mode: string, dest: string) =>
      visiting.get('/jobs', {
        'Sec-Fetch-Site': 'cross-site',
        'Sec-Fetch-Mode': mode,
        'Sec-Fetch-Dest': dest,
      });
    expect(await from('navigate', 'document')).toMatchObject({ status: 200 });
    expect(await from('navigate', 'iframe')).toMatchObject({ status: 403 });
    expect(await from('no-cors', 'image')).toMatchObject({ status: 403 });
    expect(await from('cors', 'empty')).toMatchObject({ status: 403 });
  });
});

test('actions without a session say so; actions by GET and unknown pages are answered with a page', async () => {
  await using on = await startTestSandbox();
  const stranger = visitor(on.sandbox);
  for (const path of ACTIONS.filter((each) => !each.startsWith('/sign'))) {
    const { status, text } = await stranger.post(path);
    expect({ path, status }).toEqual({ path, status: 401 });
    expect(text).toContain('You are not signed in');
  }
  const visiting = await signedIn(on.sandbox);
  for (const path of [
    '/tier',
    '/deliveries/whd_1/redeliver',
    '/webhooks/secret/rotate',
    '/tokens/tok_1/revoke',
    '/sign-out',
  ]) {
    const { status, text, headers } = await visiting.get(path);
    expect({ path, status, allow: headers.get('allow') }).toEqual({ path, status: 405, allow: 'POST' });
    expect(text).toContain('Use the button on its page');
  }
  for (const path of ['/nothing', '/jobs/job_none', '/deliveries/whd_none', '/jobs/job_1/more', '/Jobs']) {
    expect(await visiting.get(path)).toMatchObject({
      status: 404,
      text: expect.stringContaining('There is no such'),
    });
  }
  for (const path of ['/tokens/tok_none/revoke', '/deliveries/whd_none/redeliver']) {
    expect(await visiting.post(path)).toMatchObject({ status: 404 });
  }
  const large = await visiting.post('/tokens', { name: 'x'.repeat(70_000) });
  expect(large).toMatchObject({ status: 413, text: expect.stringContaining('larger than') });
  const json = await fetch(`${on.sandbox.dashboardUrl}/tokens`, {
    method: 'POST',
    headers: { Origin: visiting.origin, Cookie: visiting.cookie ?? '', 'Content-Type': 'application/json' },
    body: '{}',
  });
  expect(json.status).toBe(415);
});
