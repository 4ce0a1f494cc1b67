// Signing in to the console and out of it, and how sessions end.

import { expect, test } from 'vitest';
import {
  askConsole,
  COOKIE_NAME,
  sessionIn,
  type Visit,
  visitConsole,
  visitWith,
} from '../../support/console.ts';
import { newToken, operators } from '../../support/operators.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { shareTestService } from '../../support/shared-service.ts';

const shared = shareTestService();

const SIGN_IN = '/console/sign-in';

const signIn = (relay: TestService, form: Record<string, string>, headers: Record<string, string> = {}) =>
  askConsole(relay, SIGN_IN, { method: 'POST', form, headers });

/** What a page needs a session for: 200 with one, 303 to the sign-in page without. */
const statusOf = async (visit: Pick<Visit, 'get'>) => (await visit.get('/console/jobs')).status;

const actionsOf = (relay: TestService, { token }: Visit) =>
  relay.database.query('select action from operator_log where token_id = $1 order by id', [token.id]);

const leaveIdle = (relay: TestService, { token }: Visit) =>
  relay.database.query(
    `update sessions set last_used_at = now() - interval '100 minutes' where token_id = $1`,
    [token.id],
  );

async function isFresh(relay: TestService, { token }: Visit): Promise<boolean | undefined> {
  const [row] = await relay.database.query<{ fresh: boolean }>(
    `select last_used_at > now() - interval '1 minute' as fresh from sessions where token_id = $1`,
    [token.id],
  );
  return row?.fresh;
}

async function makeCode(relay: TestService, role: 'viewer' | 'admin' = 'viewer') {
  const caller = await operators(relay, { role });
  const { body } = await caller.post<{ code: string }>('/sign-in-codes');
  return { ...caller, code: body.code };
}

test('a token becomes a session in a cookie that scripts and other sites’ pages cannot use', async () => {
  const relay = shared();
  const { token, value } = await newToken(relay.database, { role: 'viewer', name: 'desk 1' });

  const answer = await signIn(relay, { token: ` ${value}\n` });

  expect([answer.status, answer.location]).toEqual([303, '/console']);
  const [cookie = '', ...others] = answer.headers['set-cookie'] ?? [];
  expect(others).toEqual([]);
  expect(cookie).toMatch(/^tallyhook_console=[\w-]{43}; Path=\/console; HttpOnly; SameSite=Lax$/);
  const session = sessionIn(answer) ?? '';
  const page = await visitWith(relay, session).get('/console/jobs');
  expect(page.status).toBe(200);
  expect(page.text).toContain('desk 1 viewer');
  // Neither value is anywhere but with its owner.
  const rows = await relay.database.query('select * from sessions where token_id = $1', [token.id]);
  expect(rows).toMatchObject([{ token_id: token.id, ended_at: null, remote_address: '127.0.0.1' }]);
  expect(JSON.stringify([rows, relay.log, page.html])).not.toContain(session);
  expect(JSON.stringify([relay.log, page.html, answer.html])).not.toContain(value);
  const log = await relay.database.query('select action, detail from operator_log where token_id = $1', [
    token.id,
  ]);
  expect(log).toEqual([{ action: 'session.create', detail: '{"by":"token"}' }]);
});

test('behind TLS, as a trusted proxy tells, the cookie is Secure', async () => {
  await using relay = await startTestService({ env: { TRUSTED_PROXIES: '127.0.0.1/32' } });
  const { value } = await newToken(relay.database);
  const ask = async (proto: string) => {
    const { headers } = await signIn(relay, { token: value }, { 'x-forwarded-proto': proto });
    return headers['set-cookie']?.[0];
  };
  expect(await ask('https')).toMatch(/; HttpOnly; Secure; SameSite=Lax$/);
  expect(await ask('http')).toMatch(/; HttpOnly; SameSite=Lax$/);
});

test('who is no trusted proxy cannot tell that there is TLS', async () => {
  const relay = shared();
  const { value } = await newToken(relay.database);
  const { headers } = await signIn(relay, { token: value }, { 'x-forwarded-proto': 'https' });
  expect(headers['set-cookie']?.[0]).toMatch(/; HttpOnly; SameSite=Lax$/);
});

test('a token that is wrong, revoked, expired or of another environment begins nothing', async () => {
  const relay = shared();
  const [valid, revoked, expired, live, metrics] = await Promise.all([
    newToken(relay.database),
    newToken(relay.database),
    newToken(relay.database),
    newToken(relay.database, { environment: 'live' }),
    newToken(relay.database, { role: 'scraper' }),
  ]);
  await relay.database.query('update tokens set revoked_at = now() where id = $1', [revoked.token.id]);
  await relay.database.query(
    `update tokens set created_at = now() - interval '2 hours', expires_at = now() - interval '1 hour' where id = $1`,
    [expired.token.id],
  );
  const wrong = `${valid.value.slice(0, -1)}${valid.value.endsWith('A') ? 'B' : 'A'}`;

  for (const token of [wrong, revoked.value, expired.value, live.value, 'nonsense', '']) {
    const answer = await signIn(relay, { token });
    expect([answer.status, sessionIn(answer)]).toEqual([401, undefined]);
    expect(answer.text).toContain('This token is not valid');
    expect(answer.html).not.toContain(token === '' ? 'value="thk_' : token);
  }
  const answer = await signIn(relay, { token: metrics.value });
  expect([answer.status, sessionIn(answer)]).toEqual([403, undefined]);
  expect(answer.text).toContain('This token reads metrics and nothing else');
  const ids = [valid, revoked, expired, live, metrics].map(({ token }) => token.id);
  expect(await relay.database.query('select from sessions where token_id = any($1)', [ids])).toEqual([]);
});

test('a session ends when somebody signs out, and the cookie is taken away', async () => {
  const relay = shared();
  const visit = await visitConsole(relay);
  const { forms } = await visit.get('/console/jobs');

  const out = await visit.submit(forms.find(({ action }) => action === '/console/sign-out'));

  expect([out.status, out.text]).toEqual([200, expect.stringContaining('Your session has ended')]);
  expect(out.headers['set-cookie']).toEqual([
    `${COOKIE_NAME}=; Path=/console; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; SameSite=Lax`,
  ]);
  expect(await statusOf(visit)).toBe(303);
  expect((await visit.post('/console/sign-out')).status).toBe(200); // once more does no harm
  const log = await actionsOf(relay, visit);
  expect(log).toEqual([{ action: 'session.create' }, { action: 'session.end' }]);
});

test('who signs in again has a new session, and the one before has ended', async () => {
  const relay = shared();
  const visit = await visitConsole(relay);
  const again = await visit.post(SIGN_IN, { token: visit.value });
  const session = sessionIn(again) ?? '';
  expect(session).not.toBe(visit.session);
  expect([await statusOf(visit), await statusOf(visitWith(relay, session))]).toEqual([303, 200]);
  const log = await actionsOf(relay, visit);
  expect(log.map(({ action }) => action)).toEqual(['session.create', 'session.end', 'session.create']);
});

test('signing out needs a POST', async () => {
  const relay = shared();
  const visit = await visitConsole(relay);
  expect((await visit.get('/console/sign-out')).status).toBe(404);
  expect(await statusOf(visit)).toBe(200);
});

test('a revoked token ends its sessions at once, and no others', async () => {
  const relay = shared();
  const [admin, other, visit, second] = await Promise.all([
    operators(relay),
    visitConsole(relay, { role: 'viewer' }),
    visitConsole(relay, { role: 'viewer' }),
    visitConsole(relay, { role: 'viewer' }),
  ]);
  expect(await statusOf(visit)).toBe(200);

  expect((await admin.post(`/tokens/${visit.token.id}/revoke`)).status).toBe(200);

  expect(await statusOf(visit)).toBe(303);
  expect([await statusOf(other), await statusOf(second)]).toEqual([200, 200]);
});

test('an expired token ends its sessions', async () => {
  const relay = shared();
  const visit = await visitConsole(relay, { expiresAt: new Date(Date.now() + 3_600_000) });
  expect(await statusOf(visit)).toBe(200);
  await relay.database.query(`update tokens set expires_at = now() where id = $1`, [visit.token.id]);
  expect(await statusOf(visit)).toBe(303);
});

test.for([
  ['idle for two hours', `last_used_at = now() - interval '120 minutes'`, 303],
  ['used within two hours', `last_used_at = now() - interval '119 minutes'`, 200],
  ['twelve hours old, however busy', `expires_at = now(), last_used_at = now()`, 303],
  ['ended by somebody', `ended_at = now()`, 303],
] as const)('a session that is %s answers so', async ([, change, expected]) => {
  const relay = shared();
  const visit = await visitConsole(relay);
  await relay.database.query(`update sessions set ${change} where token_id = $1`, [visit.token.id]);
  expect(await statusOf(visit)).toBe(expected);
});

test('a session ends twelve hours after it began, and each use keeps it from being idle', async () => {
  const relay = shared();
  const visit = await visitConsole(relay);
  const [row] = await relay.database.query<{ hours: number }>(
    'select extract(epoch from expires_at - created_at)::float8 / 3600 as hours from sessions where token_id = $1',
    [visit.token.id],
  );
  expect(row?.hours).toBeCloseTo(12, 3);
  await leaveIdle(relay, visit);
  expect(await statusOf(visit)).toBe(200);
  await expect.poll(() => isFresh(relay, visit)).toBe(true);
});

test('a page that the script loads again keeps no session from being idle', async () => {
  const relay = shared();
  const visit = await visitConsole(relay);
  await leaveIdle(relay, visit);
  const headers = { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' };
  for (let count = 0; count < 3; count++) expect((await visit.get('/console', { headers })).status).toBe(200);
  expect(await isFresh(relay, visit)).toBe(false);
});

test('no secret of signing in reaches the log, whatever the request, and no address is an error of ours', async () => {
  await using relay = await startTestService();
  const visit = await visitConsole(relay);
  const { code } = await makeCode(relay);
  const secrets = { token: visit.value, code, session: visit.session };
  const said = new URLSearchParams(secrets).toString();
  const statuses: number[] = [];
  for (const path of [
    `${SIGN_IN}?code=${code}&next=${encodeURIComponent('/\t/[')}`,
    `/console/jobs?code=${code}&session=${visit.session}`,
    `/console/deliveries/%ff?${said}`,
    `/console/deliveries/%E0%A4?code=${code}`,
    `/console/nothing/${visit.session}`,
  ]) {
    statuses.push((await visit.get(path)).status, (await askConsole(relay, path)).status);
    statuses.push((await visit.post(path, secrets)).status);
  }
  const type = { headers: { 'content-type': 'text/plain' } };
  statuses.push((await visit.post(SIGN_IN, { ...secrets, next: '/\t/[' }, type)).status);
  statuses.push((await signIn(relay, { token: visit.value, next: '/\t/[' })).status);
  expect(statuses.filter((status) => status >= 500)).toEqual([]);
  const log = JSON.stringify(relay.log);
  for (const [name, secret] of Object.entries(secrets))
    expect([name, log.includes(secret)]).toEqual([name, false]);
  expect(relay.log.filter(({ level }) => level === 'error')).toEqual([]);
  expect(relay.log.filter(({ msg }) => msg === 'console request').length).toBeGreaterThan(5);
});

test('who is not signed in is led to the form and, after it, to the page', async () => {
  const relay = shared();
  const { value } = await newToken(relay.database);
  const asked = await askConsole(relay, '/console/jobs?state=failed&source=a%26b');
  expect(asked.status).toBe(303);

  const page = await askConsole(relay, asked.location ?? '');

  expect([page.status, page.forms.length]).toEqual([200, 1]);
  const [form] = page.forms;
  expect(form).toMatchObject({ action: SIGN_IN, method: 'post' });
  const answer = await signIn(relay, { ...form?.fields, token: value });
  expect(answer.location).toBe('/console/jobs?state=failed&source=a%26b');
});

test('a stale session does nothing that is asked by a form, and says so', async () => {
  const relay = shared();
  const visit = await visitConsole(relay);
  await relay.database.query('update sessions set ended_at = now() where token_id = $1', [visit.token.id]);
  const answer = await visit.post('/console/jobs');
  expect([answer.status, answer.text]).toEqual([401, expect.stringContaining('Nothing was done')]);
});

test.for([
  'https://evil.example/',
  '//evil.example/',
  '/\\evil.example',
  '/metrics',
  '/consolex',
  '/console@evil.example',
  '/console/../metrics',
  '/console/%2e%2e/metrics',
  '/console/..//evil.example',
  'javascript:alert(1)',
  '/console/jobs\r\nSet-Cookie: a=b',
  '',
])('after signing in, nothing leads out of the console: %s', async (next) => {
  const relay = shared();
  const { value } = await newToken(relay.database);
  const { status, location = '', headers } = await signIn(relay, { token: value, next });
  expect(status).toBe(303);
  const { origin, pathname } = new URL(location, relay.operators);
  expect([origin, pathname]).toEqual([relay.operators, expect.stringMatching(/^\/console(?:$|\/jobs)/)]);
  expect(headers['set-cookie']).toHaveLength(1);
});

test('a token in an address is refused, with or without a session, and is not written to the log', async () => {
  const relay = shared();
  const visit = await visitConsole(relay);
  const { value } = await newToken(relay.database);
  for (const path of [`${SIGN_IN}?token=${value}`, `/console/jobs?job_id=${value.replace('_', '%5F')}`]) {
    for (const ask of [visit.get, (address: string) => askConsole(relay, address)]) {
      const answer = await ask(path);
      expect([answer.status, answer.text]).toEqual([400, expect.stringMatching(/revoke this token/)]);
      expect(answer.html).not.toContain(value);
    }
  }
  expect(JSON.stringify(relay.log)).not.toContain(value.slice(9));
});

test('a code signs in once, by the form alone', async () => {
  const relay = shared();
  const { code, token } = await makeCode(relay);
  const path = `${SIGN_IN}?code=${code}`;

  // Programs that open links in advance use nothing up.
  for (const method of ['GET', 'HEAD', 'GET'] as const) {
    const opened = await askConsole(relay, path, { method, headers: { 'sec-fetch-site': 'none' } });
    expect([opened.status, opened.headers['set-cookie']]).toEqual([200, undefined]);
  }
  const [form] = (await askConsole(relay, path)).forms;
  expect(form?.fields).toEqual({ code, next: '/console' });
  const first = await signIn(relay, { ...form?.fields });
  const again = await signIn(relay, { ...form?.fields });

  expect(first.status).toBe(303);
  expect(await statusOf(visitWith(relay, sessionIn(first) ?? ''))).toBe(200);
  expect([again.status, sessionIn(again)]).toEqual([401, undefined]);
  expect(again.text).toContain('This code was used, is older than 10 minutes, or is mistyped.');
  expect(await relay.database.query('select from sessions where token_id = $1', [token.id])).toHaveLength(1);
  const log = await relay.database.query(
    `select detail from operator_log where action = 'session.create' and token_id = $1`,
    [token.id],
  );
  expect(log).toEqual([{ detail: '{"by":"code"}' }]);
});

test('of many that use a code at once, one is signed in', async () => {
  const relay = shared();
  const { code, token } = await makeCode(relay);
  const answers = await Promise.all(Array.from({ length: 8 }, () => signIn(relay, { code })));
  const statuses = answers.map(({ status }) => status);
  expect(statuses.filter((status) => status === 303)).toHaveLength(1);
  expect(statuses.filter((status) => status === 401)).toHaveLength(7);
  expect(await relay.database.query('select from sessions where token_id = $1', [token.id])).toHaveLength(1);
});

test.for([
  ['expired', `update sign_in_codes set expires_at = now() where token_id = $1`, 401],
  [
    'nearly ten minutes old',
    `update sign_in_codes set expires_at = now() + interval '5 seconds' where token_id = $1`,
    303,
  ],
  ['of a revoked token', `update tokens set revoked_at = now() where id = $1`, 401],
] as const)('a code that is %s answers so', async ([, change, expected]) => {
  const relay = shared();
  const { code, token } = await makeCode(relay);
  await relay.database.query(change, [token.id]);
  expect((await signIn(relay, { code })).status).toBe(expected);
});

test('a code is valid for ten minutes, and no token or session is a code', async () => {
  const relay = shared();
  const { token, value } = await makeCode(relay);
  const [row] = await relay.database.query<{ minutes: number }>(
    'select extract(epoch from expires_at - now())::float8 / 60 as minutes from sign_in_codes where token_id = $1',
    [token.id],
  );
  expect(row?.minutes).toBeGreaterThan(9);
  expect(row?.minutes).toBeLessThanOrEqual(10);
  const { session } = await visitConsole(relay);
  for (const code of [value, session, 'x', '']) expect((await signIn(relay, { code })).status).toBe(401);
});

test('guesses are limited by their address, and do not limit who is signed in', async () => {
  await using relay = await startTestService({ env: { API_REQUESTS_PER_MINUTE: '3' } });
  const visit = await visitConsole(relay);
  const guess = (from: string) =>
    askConsole(relay, SIGN_IN, { method: 'POST', form: { token: 'nonsense' }, from });
  const statuses: number[] = [];
  for (let count = 0; count < 33; count++) statuses.push((await guess('127.0.0.2')).status);

  expect(statuses.slice(0, 30)).toEqual(Array<number>(30).fill(401));
  expect(statuses.slice(30)).toEqual([429, 429, 429]);
  const late = await guess('127.0.0.2');
  expect(Number(late.headers['retry-after'])).toBeGreaterThan(0);
  expect(late.text).toContain('Too many requests');
  expect(await statusOf(visit)).toBe(200);
  expect((await guess('127.0.0.3')).status).toBe(401);
});

test('a session counts against its token’s limit, which the API shares', async () => {
  await using relay = await startTestService({ env: { API_REQUESTS_PER_MINUTE: '3' } });
  const visit = await visitConsole(relay);
  const statuses: number[] = [];
  // The first request with a new cookie counts for its address: the cookie is not known yet.
  for (let count = 0; count < 5; count++) statuses.push(await statusOf(visit));
  expect(statuses).toEqual([200, 200, 200, 200, 429]);
  const api = await fetch(`${relay.operators}/api/v1/jobs`, {
    headers: { authorization: `Bearer ${visit.value}` },
  });
  expect(api.status).toBe(429);
});
