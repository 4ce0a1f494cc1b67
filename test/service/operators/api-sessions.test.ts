// Sessions of the console as the API shows and ends them, and the code that begins one.

import { expect, test } from 'vitest';
import { SESSIONS_PER_TOKEN_MAX } from '../../../src/operators/kernel/access/sessions.queries.ts';
import { type Operators, operators, type TokenOptions } from '../../support/operators.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { shareTestService } from '../../support/shared-service.ts';

type Item = { id: string; token_id: string; token_name: string };

const shared = shareTestService();

/** As a browser's form sends it. */
async function signIn(relay: TestService, fields: Record<string, string>): Promise<string | undefined> {
  const answer = await fetch(`${relay.operators}/console/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'Sec-Fetch-Site': 'same-origin' },
    body: new URLSearchParams(fields),
  });
  return answer.headers.getSetCookie()[0]?.split(';')[0];
}

async function opens(relay: TestService, cookie: string | undefined): Promise<boolean> {
  const headers = { Cookie: cookie ?? '' };
  const answer = await fetch(`${relay.operators}/console/jobs`, { redirect: 'manual', headers });
  return answer.status === 200;
}

const sessionsOf = async (admin: Operators) => (await admin.get<{ items: Item[] }>('/sessions')).body.items;

/** Alone, since all sessions are listed, and the whole log. */
test('a session is listed by its token, and ends when an admin ends it', async () => {
  await using relay = await startTestService();
  const admin = await operators(relay);
  const viewer = await operators(relay, { role: 'viewer', name: 'the viewer' });
  const cookie = await signIn(relay, { token: viewer.value });
  expect(await opens(relay, cookie)).toBe(true);

  const { body } = await admin.get<{ items: Item[] }>('/sessions');
  expect(body.items).toMatchObject([{ token_id: viewer.token.id, token_name: 'the viewer' }]);
  const path = `/sessions/${body.items[0]?.id ?? ''}/end`;
  expect(await admin.post(path)).toMatchObject({ status: 200, body: { ended: true } });
  expect(await opens(relay, cookie)).toBe(false);
  expect(await sessionsOf(admin)).toEqual([]);

  expect(await admin.post(path)).toMatchObject({ status: 200, body: { ended: true } });
  expect(await admin.post('/sessions/ses_none/end')).toMatchObject({ status: 404 });
  const { body: log } = await admin.get<{ items: { action: string; actor: string }[] }>('/operator-log');
  expect(log.items.map(({ action, actor }) => `${action} ${actor}`)).toEqual([
    `session.end ${admin.token.name}`,
    'session.create the viewer',
  ]);
});

test('a code that a token made signs in as that token, once', async () => {
  const relay = shared();
  const admin = await operators(relay);
  const viewer = await operators(relay, { role: 'viewer' });
  const { status, body } = await viewer.post<{ code: string }>('/sign-in-codes', undefined, { key: 'k' });
  expect(status).toBe(201);

  const cookie = await signIn(relay, { code: body.code });
  expect(await opens(relay, cookie)).toBe(true);
  expect(await signIn(relay, { code: body.code })).toBeUndefined();
  const open = await sessionsOf(admin);
  expect(open.filter(({ token_id: id }) => id === viewer.token.id)).toHaveLength(1);

  const again = await viewer.post('/sign-in-codes', undefined, { key: 'k' });
  expect(again.status).toBe(201);
  expect(again.body).not.toHaveProperty('code');
});

test('a token has at most a bounded number of sessions: the oldest ends when another begins', async () => {
  const relay = shared();
  const admin = await operators(relay);
  const first = await signIn(relay, { token: admin.value });
  const second = await signIn(relay, { token: admin.value });
  for (let count = 2; count < SESSIONS_PER_TOKEN_MAX; count++) await signIn(relay, { token: admin.value });
  expect(await opens(relay, first)).toBe(true);

  const newest = await signIn(relay, { token: admin.value });
  expect(await opens(relay, first)).toBe(false);
  expect(await opens(relay, second)).toBe(true);
  expect(await opens(relay, newest)).toBe(true);
  const own = (await sessionsOf(admin)).filter(({ token_id: id }) => id === admin.token.id);
  expect(own).toHaveLength(SESSIONS_PER_TOKEN_MAX);
});

test.for<[string, TokenOptions, boolean]>([
  ['a viewer', { role: 'viewer' }, true],
  ['an operator', { role: 'operator' }, true],
  ['an admin of some sources', { role: 'admin', sources: ['default'] }, true],
  ['a scraper', { role: 'scraper' }, false],
])('%s neither lists nor ends sessions', async ([, options, mayMakeCodes]) => {
  const relay = shared();
  const caller = await operators(relay, options);

  expect(await caller.get('/sessions')).toMatchObject({ status: 403 });
  expect(await caller.post('/sessions/ses_none/end')).toMatchObject({ status: 403 });
  expect(await caller.post('/sign-in-codes')).toMatchObject({ status: mayMakeCodes ? 201 : 403 });
});

test('a code of a token that was revoked meanwhile signs nobody in', async () => {
  const relay = shared();
  const admin = await operators(relay);
  const viewer = await operators(relay, { role: 'viewer' });
  const { body } = await viewer.post<{ code: string }>('/sign-in-codes');
  await admin.post(`/tokens/${viewer.token.id}/revoke`);

  expect(await signIn(relay, { code: body.code })).toBeUndefined();
});
