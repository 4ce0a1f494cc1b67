// The overview over HTTP: what needs a decision comes first, with its count and the page where it is decided.

import { expect, test } from 'vitest';
import { visitConsole } from '../../support/console.ts';
import { untilNonePending } from '../../support/facts.ts';
import { addWaiting } from '../../support/outbox-rows.ts';
import { addEntry } from '../../support/relay.ts';
import { replayToNobody } from '../../support/replays.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { until } from '../../support/until.ts';

const quarantine = (relay: TestService) =>
  deliver(relay.webhooks, { job_id: newJobId(), status: 'unheard_of' });

test('the overview of a service that has nothing to decide says that all is well', async () => {
  await using relay = await startTestService();
  const visit = await visitConsole(relay, { role: 'viewer' });
  const { text, status } = await until(
    'a leader with a heartbeat',
    async () => {
      const page = await visit.get('/console');
      return page.text.includes('leads') ? page : undefined;
    },
    { limitMs: 20_000 },
  );
  expect(status).toBe(200);
  expect(text).toContain('All is well. Nothing needs a decision.');
  expect(text).toContain('RabbitMQ connected Postgres up');
  expect(text).toContain('No deliveries in the last hour.');
});

test('what needs a decision is named with its number and leads to where it is decided', async () => {
  await using relay = await startTestService();
  await quarantine(relay);
  await quarantine(relay);
  await deliver(relay.webhooks, completed(newJobId()));
  const visit = await visitConsole(relay, { role: 'viewer' });
  const { links, text } = await until(
    'the event is returned, since no queue is bound',
    async () => {
      const page = await visit.get('/console');
      return page.text.includes('returned: no queue') ? page : undefined;
    },
    { limitMs: 20_000 },
  );
  expect(text).not.toContain('All is well');
  expect(links).toContainEqual({ href: '/console/quarantine', text: '2 deliveries in quarantine' });
  expect(links).toContainEqual({ href: '/console/outbox?state=returned', text: '1 event returned' });
});

test('a stuck job needs a decision', async () => {
  await using relay = await startTestService();
  await deliver(relay.webhooks, { job_id: newJobId(), status: 'processing', progress_percentage: 5 });
  await relay.database.query(`update jobs set first_seen_at = first_seen_at - interval '2 hours'`);
  const { links } = await (await visitConsole(relay)).get('/console');
  expect(links).toContainEqual({ href: '/console/jobs?state=stuck', text: '1 job stuck' });
});

test('a broker that cannot be reached is said first', async () => {
  await using relay = await startTestService({ env: { AMQP_URL: 'amqp://127.0.0.1:1' } });
  const { text } = await (await visitConsole(relay)).get('/console');
  expect(text).toContain('Something is not working. RabbitMQ cannot be reached.');
  expect(text).not.toContain('All is well');
});

test('while the broker cannot be reached, nobody leads, which is no second fault, and what waits says for what', async () => {
  await using relay = await startTestService({ env: { AMQP_URL: 'amqp://127.0.0.1:1' } });
  await deliver(relay.webhooks, completed(newJobId()));
  await relay.database.query(`update outbox_batches set recorded_at = recorded_at - interval '5 minutes'`);
  const visit = await visitConsole(relay);
  const { text } = await until(
    'a heartbeat',
    async () => {
      const page = await visit.get('/console');
      return page.text.includes('no replica') && !page.text.includes('seconds after its start')
        ? page
        : undefined;
    },
    { limitMs: 20_000 },
  );
  expect(text).toContain('has waited for 5 minutes: RabbitMQ does not take it.');
  expect(text).not.toContain('No replica leads the relay');
});

test('the oldest event that waits behind another one leads to that one', async () => {
  await using relay = await startTestService();
  const { job } = await addWaiting(relay, 'parked');
  await addEntry(relay.database, { jobId: job, percent: 50 });
  // In this order: the relay makes an entry of it that is held, sooner or later.
  for (const table of ['events', 'outbox_batches', 'outbox_held']) {
    await relay.database.query(`update ${table} set recorded_at = recorded_at - interval '5 minutes'`);
  }
  const { links, text } = await (await visitConsole(relay)).get('/console');
  expect(text).toContain('has waited for 5 minutes: it waits for completed, which is parked');
  expect(links).toContainEqual({
    href: `/console/outbox?source=default&job_id=${job}`,
    text: 'completed',
  });
});

test('an event that was not tried says so, with no time that has passed, as a row and as a group', async () => {
  await using relay = await startTestService({ env: { AMQP_URL: 'amqp://127.0.0.1:1' } });
  await deliver(relay.webhooks, completed(newJobId()));
  const { text } = await (await visitConsole(relay)).get('/console/outbox');
  expect(text).toMatch(/pending ?, due now/);
  expect(text).toContain('not tried yet');
  expect(text).toContain('no attempt has failed');
});

test('a job whose event holds the later ones back says so in the list', async () => {
  await using relay = await startTestService();
  await addWaiting(relay, 'parked');
  const { text } = await (await visitConsole(relay)).get('/console/jobs');
  expect(text).toContain('held back');
});

test('while the broker cannot be reached, the outbox says so above what waits for it', async () => {
  await using relay = await startTestService({ env: { AMQP_URL: 'amqp://127.0.0.1:1' } });
  await deliver(relay.webhooks, completed(newJobId()));
  const { text } = await (await visitConsole(relay)).get('/console/outbox');
  expect(text).toContain('RabbitMQ cannot be reached. Pending events wait for it');
});

test('the charts show each outcome with its number, and have a table', async () => {
  await using relay = await startTestService();
  const jobId = newJobId();
  await deliver(relay.webhooks, completed(jobId));
  await deliver(relay.webhooks, completed(jobId));
  await deliver(relay.webhooks, completed(newJobId()), { secret: 'another-secret-0123456789' });
  const visit = await visitConsole(relay);
  const page = await until(
    'the statistics are written',
    async () => {
      const found = await visit.get('/console?range=24h');
      return ['unauthorized 1', 'returned 1'].every((part) => found.text.includes(part)) ? found : undefined;
    },
    { limitMs: 30_000 },
  );
  expect(page.text).toContain('3 deliveries in the last 24 hours: 1 accepted, 1 duplicate, 1 unauthorized.');
  expect(page.text).toContain('1 publication in the last 24 hours: 1 returned.');
  const list = page.links.find(({ text }) => text === 'unauthorized')?.href ?? '';
  expect((await visit.get(list)).text).toContain('the signature does not match');
  const errors = (await visit.get('/console/sources')).links.find(({ text }) => text === '1 unauthorized');
  expect((await visit.get(errors?.href ?? '')).text).toContain('the signature does not match');
  expect(page.text).toContain('Deliveries by outcome, by step From (UTC) accepted duplicate unauthorized');
  expect(page.html).not.toMatch(/\sstyle="/);
  expect(page.links).toContainEqual({ href: '/console?range=6h', text: 'Last 6 hours' });
  const week = await visit.get('/console?range=7d');
  expect(week.status).toBe(200);
  expect(week.text).toContain('in the last 7 days');
});

test('a range that there is not shows the last hour', async () => {
  await using relay = await startTestService();
  const { status, text } = await (await visitConsole(relay)).get('/console?range=constructor');
  expect(status).toBe(200);
  expect(text).toContain('in the last hour');
});

test('a replay that stopped by itself needs a decision, and its copies are left to it', async () => {
  await using relay = await startTestService();
  await deliver(relay.webhooks, completed(newJobId()));
  await untilNonePending(relay.database);
  await replayToNobody(relay.database, { filter: { source: 'default' } });
  const visit = await visitConsole(relay);
  const { links } = await until(
    'the replay is paused, since its queue is not there',
    async () => {
      const page = await visit.get('/console');
      return page.text.includes('1 replay paused') ? page : undefined;
    },
    { limitMs: 20_000 },
  );
  expect(links).toContainEqual({ href: '/console/replays?state=paused', text: '1 replay paused' });
  const { text } = await visit.get('/console/outbox?copies=true');
  expect(text).toContain('These are copies of replays');
  expect(text).not.toContain('selected');
});
