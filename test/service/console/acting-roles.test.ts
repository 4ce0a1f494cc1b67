// Every page and action of the operators' decisions, by role and by where the request comes from.

import { expect, test } from 'vitest';
import { visitConsole } from '../../support/console.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';

const ROLES = ['viewer', 'auditor', 'operator', 'admin'] as const;
const NONE = '00000000-0000-7000-8000-000000000000';

/** By the lowest role that may. */
const PAGES = {
  viewer: ['/console/replays', '/console/outbox', '/console/quarantine', `/console/replays/${NONE}`],
  auditor: ['/console/operator-log'],
  operator: [
    '/console/replays/new',
    `/console/replays/${NONE}/cancel`,
    '/console/outbox/retry?ids=1',
    '/console/outbox/discard?ids=1',
    '/console/outbox/park?id=default:a:completed',
    '/console/quarantine/release?all=true',
    '/console/quarantine/discard?all=true',
  ],
  admin: [
    '/console/tokens',
    '/console/tokens/new',
    '/console/tokens/tok_x/revoke',
    '/console/sessions',
    '/console/sessions/ses_x/end',
  ],
} as const;

const ACTIONS = {
  operator: [
    '/console/replays/new',
    `/console/replays/${NONE}/pause`,
    `/console/replays/${NONE}/resume`,
    `/console/replays/${NONE}/cancel`,
    '/console/outbox/retry',
    '/console/outbox/discard',
    '/console/outbox/park',
    '/console/quarantine/release',
    '/console/quarantine/discard',
  ],
  admin: ['/console/tokens/new', '/console/tokens/tok_x/revoke', '/console/sessions/ses_x/end'],
} as const;

test.for(ROLES)('role %s: pages and actions that it may use answer, the others are 403', async (role) => {
  await using relay = await startTestService();
  await deliver(relay.webhooks, { job_id: newJobId(), status: 'archived' });
  const visit = await visitConsole(relay, { role });
  const rank = ROLES.indexOf(role);

  for (const [least, paths] of Object.entries(PAGES)) {
    const may = rank >= ROLES.indexOf(least as (typeof ROLES)[number]);
    for (const path of paths) {
      const { status } = await visit.get(path);
      expect({ path, may: status !== 403 }).toEqual({ path, may });
      expect(status).toBeLessThan(500);
    }
  }
  for (const [least, paths] of Object.entries(ACTIONS)) {
    const may = rank >= ROLES.indexOf(least as (typeof ROLES)[number]);
    for (const path of paths) {
      const { status } = await visit.post(path, { key: crypto.randomUUID() });
      expect({ path, may: status !== 403 }).toEqual({ path, may });
      expect(status).toBeLessThan(500);
    }
  }
});

test('what a role may not do is not offered', async () => {
  await using relay = await startTestService();
  await deliver(relay.webhooks, { job_id: newJobId(), status: 'archived' });
  const viewer = await visitConsole(relay, { role: 'viewer' });
  for (const path of ['/console/quarantine', '/console/outbox', '/console/replays']) {
    const page = await viewer.get(path);
    expect(page.status).toBe(200);
    expect(page.html).not.toMatch(/type="checkbox"|<button[^>]*formaction/);
    for (const { href } of page.links)
      expect(href).not.toMatch(/\/(?:new|release|discard|retry|park|tokens|sessions)\b/);
  }
});

const FOREIGN: readonly [name: string, headers: Record<string, string | undefined>][] = [
  ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
  ['another port of the same host', { 'sec-fetch-site': 'same-site' }],
  ['a foreign Origin', { 'sec-fetch-site': undefined, origin: 'https://evil.example' }],
  ['Origin null', { 'sec-fetch-site': undefined, origin: 'null' }],
  ['no Origin', { 'sec-fetch-site': undefined, origin: undefined }],
];

test('a form of another site does nothing, whatever the action; nor does one of a session that has ended', async () => {
  await using relay = await startTestService();
  await deliver(relay.webhooks, { job_id: newJobId(), status: 'archived' });
  await deliver(relay.webhooks, completed(newJobId()));
  const visit = await visitConsole(relay);
  const form = {
    key: crypto.randomUUID(),
    all: 'true',
    to: new Date().toISOString(),
    up_to: '9',
    state: 'returned',
    kind: 'completed',
    id: '1',
    note: 'x',
    name: 'forged',
    role: 'admin',
  };
  const actions = [...ACTIONS.operator, ...ACTIONS.admin, `/console/tokens/${visit.token.id}/revoke`];
  for (const path of actions) {
    for (const [name, headers] of FOREIGN) {
      const { status } = await visit.post(path, form, { headers });
      expect({ path, name, status }).toEqual({ path, name, status: 403 });
    }
  }
  await visit.post('/console/sign-out');
  for (const path of actions) {
    const page = await visit.post(path, form);
    expect({ path, status: page.status }).toEqual({ path, status: 401 });
    expect(page.text).toContain('Nothing was done');
  }
  const lines = await relay.database.query(
    `select action from operator_log where action not like 'session.%'`,
  );
  expect(lines).toEqual([]);
  expect(await relay.database.query('select from replays')).toEqual([]);
  expect(await relay.database.query('select from tokens where revoked_at is not null')).toEqual([]);
});
