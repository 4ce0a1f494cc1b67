// Who may use the console: tokens, sessions and the operator log as pages.

import { expect, test } from 'vitest';
import { askConsole, type PageAnswer, visitConsole } from '../../support/console.ts';
import { operators } from '../../support/operators.ts';
import { startTestService } from '../../support/service.ts';
import { shareTestService } from '../../support/shared-service.ts';

const shared = shareTestService();

const formOf = (page: PageAnswer, action: string) => page.forms.find((form) => form.action === action);
const tokenIn = (page: PageAnswer) => /thk_test_[\w-]+/.exec(page.html)?.[0];

test("a token's value is shown once: not by a second form, and by no other page", async () => {
  await using relay = await startTestService();
  const visit = await visitConsole(relay);
  const form = formOf(await visit.get('/console/tokens/new'), '/console/tokens/new');
  const order = { name: 'billing', role: 'viewer', expires_at: '2099-01-31' };

  const made = await visit.submit(form, order);
  const again = await visit.submit(form, order);

  const value = tokenIn(made) ?? '';
  expect(made.html).toContain('data-copy');
  expect(made.headers['cache-control']).toBe('no-store');
  expect(again.status).toBe(200);
  expect(again.text).toContain('Its value was shown once');
  const list = await visit.get('/console/tokens');
  for (const page of [again, list]) expect(page.html).not.toContain('thk_test_');
  expect(list.text).toContain('billing');
  expect(list.text).toContain('2099-01-31');
  const signedIn = await askConsole(relay, '/console/sign-in', { method: 'POST', form: { token: value } });
  expect(signedIn.status).toBe(303);
  const rows = await relay.database.query(`select from operator_log where action = 'token.create'`);
  expect(rows).toHaveLength(1);
});

test('a token is made for some sources; what cannot be is said beside the form, which keeps it', async () => {
  const relay = shared();
  const visit = await visitConsole(relay);
  const page = await visit.get('/console/tokens/new');
  const form = formOf(page, '/console/tokens/new');
  const key = form?.fields['key'] ?? '';

  const past = await visit.submit(form, { name: 'billing', role: 'auditor', expires_at: '2020-01-31' });
  expect(past.status).toBe(400);
  expect(past.text).toContain('“Expires (UTC)” must be in the future.');
  expect(formOf(past, '/console/tokens/new')?.fields).toMatchObject({
    name: 'billing',
    expires_at: '2020-01-31',
  });

  const made = await visit.post('/console/tokens/new', [
    ['key', key],
    ['name', 'billing'],
    ['role', 'auditor'],
    ['sources', 'default'],
    ['expires_at', '24h'],
  ]);
  expect(made.text).toContain('Sources default');
  expect(made.text).toMatch(/Expires \d{4}-\d\d-\d\d/);
});

test('a token is revoked after a page that asks, and its session ends at once', async () => {
  const relay = shared();
  const admin = await visitConsole(relay, { name: 'the admin' });
  const other = await visitConsole(relay, { role: 'viewer', name: 'somebody' });
  const list = await admin.get('/console/tokens');
  expect(list.text).toContain('the admin (yours)');
  const path = `/console/tokens/${other.token.id}/revoke`;
  expect(list.links.map(({ href }) => href)).toContain(path);
  const confirm = await admin.get(path);
  expect(confirm.text).toContain('somebody');
  expect((await other.get('/console/jobs')).status).toBe(200);

  const done = await admin.submit(formOf(confirm, path));
  expect((await admin.submit(formOf(confirm, path))).text).toBe(done.text);

  expect(done.text).toContain('Token revoked');
  expect((await other.get('/console/jobs')).location).toBe('/console/sign-in?next=%2Fconsole%2Fjobs');
  expect((await other.post('/console/replays/new', { key: crypto.randomUUID() })).status).toBe(401);
  expect((await admin.get('/console/sessions')).text).not.toContain('somebody');
  const rows = await relay.database.query(`select from operator_log where action = 'token.revoke'`);
  expect(rows).toHaveLength(1);
});

test('sessions are listed, the own one is marked, and one is ended after a page that asks', async () => {
  const relay = shared();
  const admin = await visitConsole(relay, { name: 'the admin' });
  const other = await visitConsole(relay, { role: 'viewer', name: 'somebody' });
  const list = await admin.get('/console/sessions');
  expect(list.text).toContain('the admin (this one)');
  expect(list.text).not.toContain('somebody (this one)');
  const [link] = list.links.filter(({ text }) => text === 'End'); // the newest session
  const confirm = await admin.get(link?.href ?? '');
  expect(confirm.text).toContain('somebody');

  const done = await admin.submit(formOf(confirm, link?.href ?? ''));

  expect(done.text).toContain('Session ended');
  expect((await other.get('/console/jobs')).status).toBe(303);
  expect((await admin.get(link?.href ?? '')).status).toBe(404);
});

test('the operator log is read with its details, and links to what each line is about', async () => {
  const relay = shared();
  const api = await operators(relay, { name: 'by hand' });
  await api.post('/tokens', { name: '<script>alert(1)</script>', role: 'viewer', sources: ['a', 'b'] });
  const visit = await visitConsole(relay, { role: 'auditor' });

  const page = await visit.get('/console/operator-log?action=token.create');

  expect(page.text).toContain('by hand admin');
  expect(page.text).toContain('role viewer');
  expect(page.text).toContain('sources a b');
  expect(page.text).toContain('name <script>alert(1)</script>');
  expect(page.html).not.toContain('<script>alert');
  expect(page.links.some(({ href }) => href.startsWith('/console/operator-log?subject='))).toBe(true);
});

test('a limited admin gets neither tokens nor sessions nor the log', async () => {
  const relay = shared();
  const visit = await visitConsole(relay, { sources: ['default'] });
  for (const path of ['/console/tokens', '/console/sessions', '/console/operator-log']) {
    expect({ path, status: (await visit.get(path)).status }).toEqual({ path, status: 403 });
  }
});
