// Decisions in the console on one, some or all: each with a page that shows first what it is about, and a form that acts on exactly
// that, once.

import { expect, test } from 'vitest';
import { listen, newExchange } from '../../support/bus.ts';
import { type PageAnswer, type Visit, visitConsole } from '../../support/console.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { OUTBOX } from '../../support/outbox.ts';

/** Nothing is bound: every event is returned. @returns the ids of the events */
async function returned(relay: TestService, count: number): Promise<string[]> {
  const before = await statesOf(relay);
  const jobs = Array.from({ length: count }, newJobId);
  for (const job of jobs) await deliver(relay.webhooks, completed(job));
  const all = before.filter((state) => state === 'returned').length + count;
  const isSo = async () => (await statesOf(relay)).filter((state) => state === 'returned').length === all;
  await until('all are returned', async () => (await isSo()) || undefined, { limitMs: 15_000 });
  return jobs.map((job) => `default:${job}:completed`);
}

const statesOf = async ({ database }: TestService) =>
  (await database.query<{ state: string }>(`select state from ${OUTBOX} order by sequence`)).map(
    ({ state }) => state,
  );

const idsOf = async ({ database }: TestService) =>
  (await database.query<{ id: string }>(`select sequence::text as id from ${OUTBOX} order by sequence`)).map(
    ({ id }) => id,
  );

async function quarantined(relay: TestService, count: number): Promise<string[]> {
  const jobs = Array.from({ length: count }, newJobId);
  for (const job of jobs) await deliver(relay.webhooks, { job_id: job, status: 'archived' });
  return jobs;
}

const waiting = async ({ database }: TestService) =>
  (
    await database.query<{ job_id: string }>(
      `select job_id from deliveries where outcome = 'quarantined' and released_at is null and discarded_at is null
       order by received_at, id`,
    )
  ).map(({ job_id: job }) => job);

const actionsOf = async ({ database }: TestService) =>
  (
    await database.query<{ action: string }>(
      `select action from operator_log where action not like 'session.%' order by id`,
    )
  ).map(({ action }) => action);

const formOf = (page: PageAnswer, action: string) =>
  page.forms.find((form) => form.action === action && form.method === 'post');

/** `ids` as a list's form sends ticked boxes. */
const ticked = (ids: readonly string[]) => ids.map((id) => `ids=${encodeURIComponent(id)}`).join('&');

async function submitTwice(visit: Visit, page: PageAnswer, action: string, values = {}) {
  const form = formOf(page, action);
  const first = await visit.submit(form, values);
  return { first, second: await visit.submit(form, values) };
}

const startAlone = () => startTestService({ exchange: newExchange() });

test('returned events are sent again after a queue was bound: exactly those that were shown', async () => {
  await using relay = await startAlone();
  await using admin = await listen(relay.exchange, { bindings: [] });
  const shown = await returned(relay, 3);
  const visit = await visitConsole(relay, { role: 'operator' });

  const list = await visit.get('/console/outbox?state=returned');
  expect(list.text).toContain('312 NO_ROUTE');
  const link = list.links.find(({ text }) => text === 'Retry all that match …');
  const confirm = await visit.get(link?.href ?? '');
  expect(confirm.text).toContain('Retry 3 events?');
  for (const id of shown) expect(confirm.text).toContain(id);
  expect(await actionsOf(relay)).toEqual([]);

  const [later = ''] = await returned(relay, 1);
  await admin.channel.bindQueue(admin.queue, relay.exchange, 'job.#');
  const { first, second } = await submitTwice(visit, confirm, '/console/outbox/retry');

  expect(first.status).toBe(200);
  expect(first.text).toContain('3 events retried');
  expect(second.text).toContain('3 events retried');
  await admin.received(3);
  expect(admin.ids().toSorted()).toEqual(shown.toSorted());
  expect(admin.ids()).not.toContain(later);
  // One line for the order and one for each event; the second form added none.
  expect(await actionsOf(relay)).toEqual(Array.from({ length: 4 }, () => 'outbox.retry'));
});

test('ticked entries are decided on, and no others, also not those that came since', async () => {
  await using relay = await startAlone();
  await using _ = await listen(relay.exchange, { bindings: [] });
  await returned(relay, 3);
  const [one = '', two = ''] = await idsOf(relay);
  const visit = await visitConsole(relay, { role: 'operator' });

  const confirm = await visit.get(`/console/outbox/discard?${ticked([one, two])}`);
  expect(confirm.text).toContain('Discard 2 events?');
  await returned(relay, 1);
  const { first, second } = await submitTwice(visit, confirm, '/console/outbox/discard');

  expect(first.text).toContain('2 events discarded');
  expect(second.text).toBe(first.text);
  const left = await idsOf(relay);
  expect(left).toHaveLength(2);
  expect(left).not.toContain(one);
  expect(left).not.toContain(two);
});

test('one entry is decided on from its row; what was decided meanwhile is said', async () => {
  await using relay = await startAlone();
  await using _ = await listen(relay.exchange, { bindings: [] });
  await returned(relay, 1);
  const visit = await visitConsole(relay, { role: 'operator' });
  const list = await visit.get('/console/outbox');
  const link = list.links.find(({ text }) => text === 'Discard');
  const confirm = await visit.get(link?.href ?? '');
  expect(confirm.text).toContain('Discard 1 event?');
  await relay.database.query('delete from outbox_held');

  const done = await visit.submit(formOf(confirm, '/console/outbox/discard'));

  expect(done.text).toContain('None was discarded');
  expect(done.text).toContain('not found');
  expect((await visit.get(link?.href ?? '')).text).toContain('Nothing to discard');
});

test('without a tick nothing is decided', async () => {
  await using relay = await startTestService();
  await quarantined(relay, 1);
  const visit = await visitConsole(relay, { role: 'operator' });

  for (const path of [
    '/console/outbox/retry',
    '/console/quarantine/release',
    '/console/quarantine/discard',
  ]) {
    const page = await visit.get(path);
    expect({ path, status: page.status }).toEqual({ path, status: 400 });
    expect(page.text).toContain('Nothing was chosen');
    expect((await visit.post(path, { key: crypto.randomUUID(), note: 'x' })).status).toBe(400);
  }
  expect(await waiting(relay)).toHaveLength(1);
});

test('a quarantined delivery is released: what is understood now becomes an event, and each result is told', async () => {
  await using relay = await startTestService();
  const [stays = '', goes = ''] = await quarantined(relay, 2);
  // As if the schemas had not known it when it came.
  await relay.database.query(
    `update deliveries set body = convert_to('{"job_id":"${goes}","status":"processing","progress_percentage":1}', 'utf8')
     where job_id = '${goes}'`,
  );
  const visit = await visitConsole(relay, { role: 'operator' });
  const list = await visit.get('/console/quarantine');
  expect(list.text).toContain('unknown status');
  const group = list.links.find(({ text }) => text === 'Release all');
  const confirm = await visit.get(group?.href ?? '');
  expect(confirm.text).toContain('Release 2 deliveries?');

  const [later = ''] = await quarantined(relay, 1);
  const { first, second } = await submitTwice(visit, confirm, '/console/quarantine/release');

  expect(first.text).toContain('1 delivery released');
  expect(first.text).toContain('still quarantined');
  expect(first.links.map(({ href }) => href)).toContain(
    `/console/event?id=${encodeURIComponent(`default:${goes}:processing:1`)}`,
  );
  expect(second.text).toBe(first.text);
  expect(await waiting(relay)).toEqual([stays, later]);
  expect(await relay.database.query('select from events')).toHaveLength(1);
});

test('discards need a reason, act on what was shown, and leave one line each', async () => {
  await using relay = await startTestService();
  await quarantined(relay, 2);
  const visit = await visitConsole(relay, { role: 'operator' });
  const confirm = await visit.get('/console/quarantine/discard?all=true');
  const [later = ''] = await quarantined(relay, 1);
  const form = formOf(confirm, '/console/quarantine/discard');

  expect((await visit.submit(form, { note: ' ' })).status).toBe(400);
  expect(await waiting(relay)).toHaveLength(3);
  const done = await visit.submit(form, { note: 'a test of team A' });

  expect(done.text).toContain('2 deliveries discarded');
  expect(await waiting(relay)).toEqual([later]);
  expect(await actionsOf(relay)).toEqual(['quarantine.discard', 'quarantine.discard']);
});

test('an order of more than one call goes on under the same bound until all is done', async () => {
  await using relay = await startTestService();
  await quarantined(relay, 1);
  // A release takes a hundred at once.
  await relay.database.query(
    `insert into deliveries select (jsonb_populate_record(d, jsonb_build_object(
       'id', gen_random_uuid(), 'job_id', 'job_' || n, 'received_at', d.received_at - n * interval '1 ms'))).*
     from deliveries d, generate_series(1, 119) n`,
  );
  const visit = await visitConsole(relay, { role: 'operator' });
  const confirm = await visit.get('/console/quarantine/release?all=true');
  expect(confirm.text).toContain('Release 120 deliveries?');
  await quarantined(relay, 1);

  const { first, second } = await submitTwice(visit, confirm, '/console/quarantine/release');
  const next = formOf(first, '/console/quarantine/release');
  expect(first.text).toContain('There is more: 120 deliveries in all');
  // The same step again offers the same next step.
  expect(formOf(second, '/console/quarantine/release')).toEqual(next);
  const last = await visit.submit(next);

  expect(last.text).toContain('The preview was of 120 deliveries');
  expect(await actionsOf(relay)).toHaveLength(120);
});

test('a form without a key, or without the bound of its preview, does nothing', async () => {
  await using relay = await startTestService();
  await quarantined(relay, 1);
  const visit = await visitConsole(relay, { role: 'operator' });
  const path = '/console/quarantine/discard';

  for (const form of [
    { all: 'true', note: 'x', to: new Date().toISOString() },
    { all: 'true', note: 'x', key: crypto.randomUUID() },
    { all: 'true', note: 'x', to: new Date().toISOString(), key: 'a key of somebody' },
  ]) {
    expect((await visit.post(path, form)).status).toBe(400);
  }
  expect(await waiting(relay)).toHaveLength(1);
});

test('copies of replays are not decided on one by one', async () => {
  await using relay = await startAlone();
  await using _ = await listen(relay.exchange, { bindings: [] });
  await returned(relay, 1);
  await relay.database.query(
    `with gone as (delete from outbox_held returning *)
     insert into replay_copies (position, replay_id, replay_of, replayed_by, source, job_id, status, late, recorded_at, data,
                                state, attempts, last_error)
     select sequence, gen_random_uuid(), sequence, 'a test', source, job_id, status, late, recorded_at, '{}', state, attempts,
            last_error
     from gone`,
  );
  const visit = await visitConsole(relay, { role: 'operator' });

  const list = await visit.get('/console/outbox?copies=true');

  expect(list.text).toContain('replay');
  expect(list.html).not.toContain('type="checkbox"');
  expect(list.links.map(({ text }) => text)).not.toContain('Retry');
});

test('an event that is pending is parked, after a page that asks', async () => {
  await using relay = await startAlone();
  await using _ = await listen(relay.exchange, { bindings: [] });
  const [id = ''] = await returned(relay, 1);
  await relay.database.query(`update outbox_held set state = 'pending', due_at = now() + interval '1 hour'`);
  const visit = await visitConsole(relay, { role: 'operator' });
  const link = (await visit.get('/console/outbox')).links.find(({ text }) => text === 'Park');
  const confirm = await visit.get(link?.href ?? '');
  expect(confirm.text).toContain('Park 1 event?');
  expect(confirm.text).toContain(id);

  const done = await visit.submit(formOf(confirm, '/console/outbox/park'));

  expect(done.text).toContain('1 event parked');
  expect(await statesOf(relay)).toEqual(['parked']);
});

test('without a choice the quarantine shows what waits, and says so', async () => {
  await using relay = await startTestService();
  const visit = await visitConsole(relay);
  const options = /<select name="state">(.*?)<\/select>/s;
  const { html } = await visit.get('/console/quarantine');
  expect(options.exec(html)?.[1]).toBe(
    '<option selected>waiting</option><option>released</option><option>discarded</option>',
  );
});
