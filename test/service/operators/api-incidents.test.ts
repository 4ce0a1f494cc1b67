// Incidents and conditions over the API: the list with its filters, how it is now, who may ask, and what is told without Postgres.

import { beforeAll, expect, test } from 'vitest';
import { CONDITIONS } from '../../../src/base/conditions.ts';
import type { ConditionNow, Incident } from '../../../src/operators/incidents/contract.ts';
import { type IncidentRow, insertIncident } from '../../support/incidents.ts';
import { type Operators, operators } from '../../support/operators.ts';
import { startBehindProxy } from '../../support/behind-proxy.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { shareTestService } from '../../support/shared-service.ts';
import { until } from '../../support/until.ts';

const shared = shareTestService();

const LONG_AGO = {
  condition: 'broker-away',
  severity: 'critical',
  beganAgo: '30 hours',
  endedAgo: '26 hours',
  eventsWaited: 1_234,
} as const satisfies IncidentRow;
const OVERNIGHT = {
  condition: 'returned',
  severity: 'critical',
  beganAgo: '25 hours',
  endedAgo: '2 hours',
  decidedBy: ['Ada', 'Grace'],
} as const satisfies IncidentRow;
const SILENT = {
  condition: 'source-silent',
  subject: 'team-a',
  severity: 'critical',
  beganAgo: '40 hours',
} as const satisfies IncidentRow;
const QUARANTINE = { condition: 'quarantine', severity: 'warning', beganAgo: '20 minutes' } as const;

let ids: Readonly<Record<'longAgo' | 'overnight' | 'silent' | 'quarantine', string>>;
let viewer: Operators;
beforeAll(async () => {
  const { database } = shared();
  ids = {
    longAgo: await insertIncident(database, LONG_AGO),
    overnight: await insertIncident(database, OVERNIGHT),
    silent: await insertIncident(database, SILENT),
    quarantine: await insertIncident(database, QUARANTINE),
  };
  viewer = await operators(shared(), { role: 'viewer' });
});

type Page = { items: Incident[]; next_cursor: string | null };

const ago = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();

async function listed(api: Operators, query: string): Promise<string[]> {
  const { status, body } = await api.get<Page>(`/incidents${query}`);
  expect(status).toBe(200);
  return body.items.map(({ id }) => id);
}

test('an incident says what it was, from when to when, how much waited, and who decided', async () => {
  const { body } = await viewer.get<Page>('/incidents?condition=returned');
  expect(body.items).toEqual([
    {
      id: ids.overnight,
      condition: 'returned',
      subject: null,
      severity: 'critical',
      state: 'ended',
      summary: 'a test of returned',
      began_at: expect.stringMatching(/^\d{4}-.*Z$/),
      ended_at: expect.stringMatching(/^\d{4}-.*Z$/),
      events_waited: 0,
      decided_by: ['Ada', 'Grace'],
    },
  ]);
});

test('the list is in the order of their begin, and each filter leaves those that it names', async () => {
  const { longAgo, overnight, silent, quarantine } = ids;
  expect(await listed(viewer, '')).toEqual([quarantine, overnight, longAgo, silent]);
  expect(await listed(viewer, '?state=open')).toEqual([quarantine, silent]);
  expect(await listed(viewer, '?state=ended')).toEqual([overnight, longAgo]);
  expect(await listed(viewer, '?severity=warning')).toEqual([quarantine]);
  expect(await listed(viewer, '?severity=critical&state=open')).toEqual([silent]);
  expect(await listed(viewer, '?source=team-a')).toEqual([silent]);
  expect(await listed(viewer, '?source=team-b')).toEqual([]);
});

test('a time finds what went on then, whenever it had begun', async () => {
  const { longAgo, overnight, silent, quarantine } = ids;
  expect(await listed(viewer, `?from=${ago(24)}`)).toEqual([quarantine, overnight, silent]);
  expect(await listed(viewer, `?from=${ago(24)}&to=${ago(1)}`)).toEqual([overnight, silent]);
  expect(await listed(viewer, `?to=${ago(24)}`)).toEqual([overnight, longAgo, silent]);
});

test('a cursor leads through all of them once', async () => {
  const found: string[] = [];
  let cursor = '';
  do {
    const { body } = await viewer.get<Page>(`/incidents?limit=1${cursor}`);
    found.push(...body.items.map(({ id }) => id));
    cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`;
  } while (cursor !== '');
  expect(found).toEqual([ids.quarantine, ids.overnight, ids.longAgo, ids.silent]);
});

test('an auditor exports them, as any other list', async () => {
  const auditor = await operators(shared(), { role: 'auditor' });
  const { text } = await auditor.get('/export?list=incidents&format=csv&condition=returned');
  expect(text).toContain(
    'id,condition,subject,severity,state,summary,began_at,ended_at,events_waited,decided_by',
  );
  expect(text).toContain(`${ids.overnight},returned,,critical,ended,a test of returned,`);
});

test('a token that is limited to some sources sees incidents of these alone, and no conditions', async () => {
  const limited = await operators(shared(), { role: 'viewer', sources: ['team-a'] });
  expect(await listed(limited, '')).toEqual([ids.silent]);
  expect(await limited.get('/incidents?source=team-b')).toMatchObject({ status: 403 });
  expect(await limited.get('/conditions')).toMatchObject({ status: 403 });
});

const conditionsOf = async (api: Operators) => {
  const { body, status } = await api.get<{ items: ConditionNow[] }>('/conditions');
  expect(status).toBe(200);
  return (name: string) => body.items.find((condition) => condition.name === name);
};

test('each condition is told as it is now, before it is an incident', async () => {
  await using relay = await startTestService();
  const api = await operators(relay, { role: 'viewer' });
  const { body } = await api.get<{ items: ConditionNow[] }>('/conditions');
  expect(new Set(body.items.map(({ name }) => name))).toEqual(new Set(Object.keys(CONDITIONS)));
  await deliver(relay.webhooks, completed(newJobId()));
  await deliver(relay.webhooks, { job_id: newJobId(), status: 'unheard_of' });
  await until(
    'the event is returned, since no queue is bound',
    async () => (await conditionsOf(api))('returned')?.is_so || undefined,
    { limitMs: 20_000 },
  );
  const now = await conditionsOf(api);
  expect(now('returned')).toMatchObject({ severity: 'critical', subject: null, value: 1 });
  expect(now('quarantine')).toMatchObject({ is_so: true, severity: 'warning', value: 1 });
  expect(now('parked')).toMatchObject({ is_so: false, value: 0 });
  expect(await listed(api, '')).toEqual([]);
});

test('without Postgres the replica says that it is away, to a token that it remembers, and nothing else is told', async () => {
  await using place = await startBehindProxy();
  const { relay } = place;
  const [api, limited] = [
    await operators(relay, { role: 'viewer' }),
    await operators(relay, { role: 'viewer', sources: ['team-a'] }),
  ];
  expect(await api.get('/conditions')).toMatchObject({ status: 200 });
  expect(await limited.get('/jobs')).toMatchObject({ status: 200 });
  place.takeAway();
  await until(
    'Postgres is known to be away',
    async () => (await conditionsOf(api))('postgres-away')?.is_so || undefined,
    {
      limitMs: 30_000,
    },
  );
  const now = await conditionsOf(api);
  expect(now('quarantine')).toMatchObject({ is_so: null, value: null });
  expect(now('broker-away')?.is_so).not.toBeNull();
  expect(await api.get('/incidents')).toMatchObject({ status: 503 });
  expect(await api.get('/sizes')).toMatchObject({ status: 503 });
  expect(await api.post('/alerts/test')).toMatchObject({ status: 503 });
  expect(await limited.get('/conditions')).toMatchObject({ status: 403 });
  const stranger = await fetch(`${relay.operators}/api/v1/conditions`, {
    headers: { Authorization: `Bearer ${api.value.slice(0, -1)}` },
  });
  expect([401, 503]).toContain(stranger.status);
});

test('a test of the channels is for admins, and is a line of the operator log', async () => {
  const relay: TestService = shared();
  const operator = await operators(relay, { role: 'operator' });
  expect(await operator.post('/alerts/test')).toMatchObject({ status: 403 });
  const admin = await operators(relay);
  expect(await admin.post('/alerts/test')).toMatchObject({ status: 200, body: { items: [] } });
  const { body } = await admin.get<{ items: unknown[] }>('/operator-log?action=alerts.test');
  expect(body.items).toMatchObject([{ actor: admin.token.name, detail: { sent: [], failed: [] } }]);
});
