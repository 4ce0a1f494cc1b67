// Who may send, and how that changes while the service runs.

import { expect, test } from 'vitest';
import { overdueSecrets, readLooks } from '../../../src/ledger/index.ts';
import { createFolder, type TestFolder } from '../../support/folder.ts';
import { deliveries, events } from '../../support/ledger.ts';
import { secretOf } from '../../support/records.ts';
import { connectTestDatabase } from '../../support/relay.ts';
import { readMetric } from '../../support/requests.ts';
import { completed, deliver, newJobId, SECRET } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';
import { startWatchedService } from '../../support/watched.ts';

const OLD = 'planted-old-secret-of-team-a';
const NEW = 'planted-new-secret-of-team-a';

const sources = (teams: Record<string, string[]>) =>
  JSON.stringify(Object.fromEntries(Object.entries(teams).map(([name, secrets]) => [name, { secrets }])));

async function startWithSources(folder: TestFolder, teams: Record<string, string[]>): Promise<TestService> {
  return startTestService({
    env: {
      SOURCES_FILE: await folder.write('sources.json', sources(teams)),
      REFUSED_ROWS_PER_MINUTE: '10000',
    },
  });
}

const status = async (relay: TestService, source: string, secret: string): Promise<number> =>
  (await deliver(`${relay.intake}/webhooks/${source}`, completed(newJobId()), { secret })).status;

test('a named source has its own address, secrets, keys and routing key', async () => {
  await using folder = await createFolder();
  const file = await folder.write('sources.json', sources({ 'team-a': [OLD] }));
  await using watched = await startWatchedService({ env: { SOURCES_FILE: file } });
  const { relay, database, bus } = watched;
  const jobId = newJobId();

  expect(await deliver(`${relay.webhooks}/team-a`, completed(jobId), { secret: OLD })).toMatchObject({
    status: 202,
    body: { outcome: 'accepted', event_id: `team-a:${jobId}:completed` },
  });
  // The same job of another source is another job.
  expect(await deliver(relay.webhooks, completed(jobId))).toMatchObject({
    status: 202,
    body: { outcome: 'accepted', event_id: `default:${jobId}:completed` },
  });
  expect(await deliver(`${relay.webhooks}/default`, completed(jobId))).toMatchObject({
    status: 200,
    body: { outcome: 'duplicate', event_id: `default:${jobId}:completed` },
  });

  // There is an order within a job only.
  const ids = [`default:${jobId}:completed`, `team-a:${jobId}:completed`];
  expect((await watched.published()).toSorted()).toEqual(ids);
  expect(bus.messages).toContainEqual(
    expect.objectContaining({
      routingKey: 'job.completed.team-a',
      event: expect.objectContaining({ source: '/sources/team-a', subject: jobId }),
    }),
  );
  expect((await deliveries(database)).slice(0, 3).map(({ source, path }) => [source, path])).toEqual([
    ['team-a', '/webhooks/team-a'],
    ['default', '/webhooks'],
    ['default', '/webhooks/default'],
  ]);
});

test('the secret of one source is not valid for any other, nor for the default one', async () => {
  await using folder = await createFolder();
  await using relay = await startWithSources(folder, { 'team-a': [OLD], 'team-b': [NEW] });

  expect(await status(relay, 'team-a', OLD)).toBe(202);
  expect(await status(relay, 'team-b', NEW)).toBe(202);
  expect(await status(relay, 'team-a', NEW)).toBe(401);
  expect(await status(relay, 'team-a', SECRET)).toBe(401);
  expect(await status(relay, 'default', OLD)).toBe(401);
  expect(await status(relay, 'team-c', OLD)).toBe(401);
  expect(await events(relay.database)).toHaveLength(2);
});

test('a delivery that is signed by a secret after its time is taken and counted, and the looks tell when', async () => {
  await using folder = await createFolder();
  const secrets = [NEW, { secret: OLD, until: '2026-01-01T00:00:00Z' }];
  await using relay = await startTestService({
    env: { SOURCES_FILE: await folder.write('sources.json', JSON.stringify({ 'team-a': { secrets } })) },
  });
  const counted = () =>
    readMetric(relay.operators, 'tallyhook_overdue_secret_deliveries_total{source="team-a"}');

  expect(await status(relay, 'team-a', NEW)).toBe(202);
  expect(await counted()).toBe(0);
  expect(await status(relay, 'team-a', OLD)).toBe(202);
  expect(await counted()).toBe(1);

  await using connection = connectTestDatabase(relay.database);
  const expiring = [{ source: 'team-a', fingerprint: secretOf(OLD).fingerprint, untilMs: Date.UTC(2026, 0) }];
  await waitFor(async () => {
    const { sources: looks } = await readLooks(connection.db);
    expect(overdueSecrets(looks, expiring, Date.now())).toEqual([
      { source: 'team-a', lastUsedS: expect.any(Number) },
    ]);
  });
});

test('without SIGNING_SECRETS there is no default source, and the named ones work', async () => {
  await using folder = await createFolder();
  const file = await folder.write('sources.json', sources({ 'team-a': [OLD] }));
  await using relay = await startTestService({ env: { SIGNING_SECRETS: undefined, SOURCES_FILE: file } });

  expect(await status(relay, 'team-a', OLD)).toBe(202);
  expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 401 });
});

test('while a secret is rotated both are valid, and the audit rows show which one is still in use', async () => {
  await using relay = await startTestService({ env: { SIGNING_SECRETS: `${OLD},${NEW}` } });

  for (const secret of [OLD, NEW, NEW]) {
    expect(await deliver(relay.webhooks, completed(newJobId()), { secret })).toMatchObject({ status: 202 });
  }

  expect((await deliveries(relay.database)).map(({ secret_fingerprint }) => secret_fingerprint)).toEqual([
    secretOf(OLD).fingerprint,
    secretOf(NEW).fingerprint,
    secretOf(NEW).fingerprint,
  ]);
  const lines = relay.log.filter(({ msg }) => msg === 'delivery');
  expect(lines.map(({ fingerprint }) => fingerprint)).toEqual([
    secretOf(OLD).fingerprint,
    secretOf(NEW).fingerprint,
    secretOf(NEW).fingerprint,
  ]);
});

test('SOURCES_FILE is read again when it changes', async () => {
  await using folder = await createFolder();
  await using relay = await startWithSources(folder, { 'team-a': [OLD] });
  expect(await status(relay, 'team-a', NEW)).toBe(401);

  await folder.write('sources.json', sources({ 'team-a': [NEW], 'team-b': [OLD] }));

  await expect.poll(() => status(relay, 'team-a', NEW), { interval: 100 }).toBe(202);
  expect(await status(relay, 'team-a', OLD)).toBe(401);
  expect(await status(relay, 'team-b', OLD)).toBe(202);
});

test('SIGNING_SECRETS_FILE is read again when it changes, and the default source is rotated without a restart', async () => {
  await using folder = await createFolder();
  const file = await folder.write('secrets', `${OLD}\n`);
  await using relay = await startTestService({
    env: { SIGNING_SECRETS: undefined, SIGNING_SECRETS_FILE: file },
  });
  expect(await status(relay, 'default', OLD)).toBe(202);
  expect(await status(relay, 'default', NEW)).toBe(401);

  await folder.write('secrets', `${OLD},${NEW}\n`);
  await expect.poll(() => status(relay, 'default', NEW), { interval: 100 }).toBe(202);
  expect(await status(relay, 'default', OLD)).toBe(202);

  await folder.write('secrets', `${NEW}\n`);
  await relay.service.reload(); // as on SIGHUP
  expect(await status(relay, 'default', NEW)).toBe(202);
  expect(await status(relay, 'default', OLD)).toBe(401);

  await folder.write('secrets', 'short\n');
  await relay.service.reload();
  expect(await status(relay, 'default', NEW)).toBe(202);
  expect(relay.log).toContainEqual(
    expect.objectContaining({ level: 50, msg: expect.stringMatching(/^SIGNING_SECRETS_FILE is broken/) }),
  );
});

test('all sources may stand in SOURCES_FILE, the default one too', async () => {
  await using folder = await createFolder();
  const file = await folder.write('sources.json', sources({ default: [OLD], 'team-a': [NEW] }));
  await using relay = await startTestService({ env: { SIGNING_SECRETS: undefined, SOURCES_FILE: file } });

  expect(await deliver(relay.webhooks, completed(newJobId()), { secret: OLD })).toMatchObject({
    status: 202,
  });
  expect(await status(relay, 'team-a', NEW)).toBe(202);
  await folder.write('sources.json', sources({ default: [NEW] }));
  await relay.service.reload();
  expect(await deliver(relay.webhooks, completed(newJobId()), { secret: NEW })).toMatchObject({
    status: 202,
  });
  expect(await deliver(relay.webhooks, completed(newJobId()), { secret: OLD })).toMatchObject({
    status: 401,
  });
});

test('reload() reads SOURCES_FILE again at once and drops no request', async () => {
  await using folder = await createFolder();
  await using relay = await startWithSources(folder, { 'team-a': [OLD] });
  const statuses: number[] = [];
  let isOver = false;
  const senders = [1, 2, 3, 4].map(async () => {
    while (!isOver) statuses.push(await status(relay, 'team-a', OLD));
  });

  for (let round = 0; round < 10; round++) {
    await folder.write(
      'sources.json',
      sources({ 'team-a': round % 2 ? [OLD] : [NEW, OLD], [`team-${round}`]: [NEW] }),
    );
    await relay.service.reload();
    expect(await status(relay, `team-${round}`, NEW)).toBe(202);
  }
  isOver = true;
  await Promise.all(senders);

  expect(statuses.length).toBeGreaterThan(10);
  expect(new Set(statuses)).toEqual(new Set([202]));
});

test('a broken SOURCES_FILE keeps the old set and logs an error with no secret in it', async () => {
  await using folder = await createFolder();
  await using relay = await startWithSources(folder, { 'team-a': [OLD] });

  for (const content of [
    `{"team-a": {"secrets": ["${NEW}"`,
    sources({ 'team-a': ['short'] }),
    sources({ 'T A': [NEW] }),
  ]) {
    await folder.write('sources.json', content);
    await relay.service.reload();
    expect(await status(relay, 'team-a', OLD)).toBe(202);
    expect(await status(relay, 'team-a', NEW)).toBe(401);
  }

  const errors = relay.log.filter(({ level }) => level === 50);
  expect(errors.length).toBeGreaterThanOrEqual(3);
  expect(JSON.stringify(relay.log)).not.toContain('planted');

  await folder.write('sources.json', sources({ 'team-a': [NEW] }));
  await relay.service.reload();
  expect(await status(relay, 'team-a', NEW)).toBe(202);
});

test('a service does not start with a broken SOURCES_FILE, and says where it is broken', async () => {
  await using folder = await createFolder();

  await expect(startWithSources(folder, { 'team-a': [OLD, ''] })).rejects.toMatchObject({
    name: 'ConfigError',
    faults: ['SOURCES_FILE team-a.secrets[1] is empty'],
  });
});
