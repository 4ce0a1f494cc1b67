// Decisions in the console on one, some or all: each with a page that shows first what it is about, and a form that acts on exactly
// that, once.

// oxlint-disable vitest/no-standalone-expect -- `it` is vitest's test with a fixture, which the rule does not know

import { expect } from 'vitest';
import { makeUnderstood } from '../../support/ledger.ts';
import { type Apart, listenApart, testApart as it } from '../../support/apart.ts';
import { type PageAnswer, type Visit, visitConsole } from '../../support/console.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { until } from '../../support/until.ts';
import { OUTBOX } from '../../support/outbox.ts';

/** Nothing is bound: every event is returned. @returns the ids of the events */
async function returned(apart: Apart, count: number): Promise<string[]> {
  const before = await statesOf(apart);
  const jobs = Array.from({ length: count }, newJobId);
  for (const job of jobs) await deliver(apart.webhooks, completed(job));
  const all = before.filter((state) => state === 'returned').length + count;
  const isSo = async () => (await statesOf(apart)).filter((state) => state === 'returned').length === all;
  await until('all are returned', async () => (await isSo()) || undefined, { limitMs: 15_000 });
  return jobs.map((job) => `${apart.source}:${job}:completed`);
}

const entriesOf = ({ relay, source }: Apart) =>
  relay.database.query<{ id: string; state: string }>(
    `select sequence::text as id, state from ${OUTBOX} where source = $1 order by sequence`,
    [source],
  );

const statesOf = async (apart: Apart) => (await entriesOf(apart)).map(({ state }) => state);

const idsOf = async (apart: Apart) => (await entriesOf(apart)).map(({ id }) => id);

async function quarantined({ webhooks }: Apart, count: number): Promise<string[]> {
  const jobs = Array.from({ length: count }, newJobId);
  for (const job of jobs) await deliver(webhooks, { job_id: job, status: 'archived' });
  return jobs;
}

const waiting = async ({ relay, source }: Apart) =>
  (
    await relay.database.query<{ job_id: string }>(
      `select job_id from deliveries
       where source = $1 and outcome = 'quarantined' and released_at is null and discarded_at is null
       order by received_at, id`,
      [source],
    )
  ).map(({ job_id: job }) => job);

const visitAs = ({ relay, source }: Apart) => visitConsole(relay, { role: 'operator', sources: [source] });

/** What the visitor did since they signed in. */
const actionsOf = async ({ relay }: Apart, { token }: Visit) =>
  (
    await relay.database.query<{ action: string }>(
      `select action from operator_log where actor = $1 and action not like 'session.%' order by id`,
      [token.name],
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

it('returned events are sent again after a queue was bound: exactly those that were shown', async ({
  apart,
}) => {
  await using admin = await listenApart(apart, []);
  const shown = await returned(apart, 3);
  const visit = await visitAs(apart);

  const list = await visit.get('/console/outbox?state=returned');
  expect(list.text).toContain('312 NO_ROUTE');
  const link = list.links.find(({ text }) => text === 'Retry all that match …');
  const confirm = await visit.get(link?.href ?? '');
  expect(confirm.text).toContain('Retry 3 events?');
  for (const id of shown) expect(confirm.text).toContain(id);
  expect(await actionsOf(apart, visit)).toEqual([]);

  const [later = ''] = await returned(apart, 1);
  await admin.channel.bindQueue(admin.queue, apart.relay.exchange, `job.*.${apart.source}`);
  const { first, second } = await submitTwice(visit, confirm, '/console/outbox/retry');

  expect(first.status).toBe(200);
  expect(first.text).toContain('3 events retried');
  expect(second.text).toContain('3 events retried');
  await admin.received(3);
  expect(admin.ids().toSorted()).toEqual(shown.toSorted());
  expect(admin.ids()).not.toContain(later);
  // One line for the order and one for each event; the second form added none.
  expect(await actionsOf(apart, visit)).toEqual(Array.from({ length: 4 }, () => 'outbox.retry'));
});

it('ticked entries are decided on, and no others, also not those that came since', async ({ apart }) => {
  await returned(apart, 3);
  const [one = '', two = ''] = await idsOf(apart);
  const visit = await visitAs(apart);

  const confirm = await visit.get(`/console/outbox/discard?${ticked([one, two])}`);
  expect(confirm.text).toContain('Discard 2 events?');
  await returned(apart, 1);
  const { first, second } = await submitTwice(visit, confirm, '/console/outbox/discard');

  expect(first.text).toContain('2 events discarded');
  expect(second.text).toBe(first.text);
  const left = await idsOf(apart);
  expect(left).toHaveLength(2);
  expect(left).not.toContain(one);
  expect(left).not.toContain(two);
});

it('one entry is decided on from its row; what was decided meanwhile is said', async ({ apart }) => {
  await returned(apart, 1);
  const visit = await visitAs(apart);
  const list = await visit.get('/console/outbox');
  const link = list.links.find(({ text }) => text === 'Discard');
  const confirm = await visit.get(link?.href ?? '');
  expect(confirm.text).toContain('Discard 1 event?');
  await apart.relay.database.query('delete from outbox_held where source = $1', [apart.source]);

  const done = await visit.submit(formOf(confirm, '/console/outbox/discard'));

  expect(done.text).toContain('None was discarded');
  expect(done.text).toContain('not found');
  expect((await visit.get(link?.href ?? '')).text).toContain('Nothing to discard');
});

it('without a tick nothing is decided', async ({ apart }) => {
  await quarantined(apart, 1);
  const visit = await visitAs(apart);

  for (const path of [
    '/console/outbox/retry',
    '/console/quarantine/release',
    '/console/quarantine/discard',
  ]) {
    const page = await visit.get(path);
    expect({ path, status: page.status }).toEqual({ path, status: 400 });
    expect(page.text).toContain('Nothing was selected');
    expect((await visit.post(path, { key: crypto.randomUUID(), note: 'x' })).status).toBe(400);
  }
  expect(await waiting(apart)).toHaveLength(1);
});

it('a quarantined delivery is released: what is understood now becomes an event, and each result is told', async ({
  apart,
}) => {
  const [stays = '', goes = ''] = await quarantined(apart, 2);
  // As if the schemas had not known it when it came.
  const { database } = apart.relay;
  await database.query(
    `update deliveries set body = convert_to('{"job_id":"${goes}","status":"processing","progress_percentage":1}', 'utf8')
     where job_id = '${goes}'`,
  );
  const visit = await visitAs(apart);
  const list = await visit.get('/console/quarantine');
  expect(list.text).toContain('unknown status');
  const group = list.links.find(({ text }) => text === 'Release all');
  const confirm = await visit.get(group?.href ?? '');
  expect(confirm.text).toContain('Release 1 of 2 deliveries?');
  expect(confirm.text).toContain('1 can be released with the present schemas, 1 cannot: 1: unknown status');

  const [later = ''] = await quarantined(apart, 1);
  const { first, second } = await submitTwice(visit, confirm, '/console/quarantine/release');

  expect(first.text).toContain('1 delivery released');
  expect(first.text).toContain('still quarantined');
  expect(first.links.map(({ href }) => href)).toContain(
    `/console/event?id=${encodeURIComponent(`${apart.source}:${goes}:processing:1`)}`,
  );
  expect(second.text).toBe(first.text);
  expect(await waiting(apart)).toEqual([stays, later]);
  expect(await database.query('select from events where source = $1', [apart.source])).toHaveLength(1);
});

it('of what cannot be released no release is offered, whether all or some are chosen, and the reasons are told', async ({
  apart,
}) => {
  const [first = ''] = await quarantined(apart, 3);
  const visit = await visitAs(apart);
  const [{ id } = { id: '' }] = await apart.relay.database.query<{ id: string }>(
    'select id from deliveries where source = $1 and job_id = $2',
    [apart.source, first],
  );

  const all = await visit.get('/console/quarantine/release?all=true');
  const one = await visit.get(`/console/quarantine/release?ids=${id}`);

  expect(all.text).toContain('None of 3 deliveries can be released');
  expect(all.text).toContain('0 can be released with the present schemas, 3 cannot: 3: unknown status');
  expect(one.text).toContain('This delivery cannot be released');
  for (const page of [all, one])
    expect(page.forms.map(({ action }) => action)).not.toContain('/console/quarantine/release');
  const discard = all.links.find(({ text }) => text === 'Discard 3 deliveries …');
  expect((await visit.get(discard?.href ?? '')).text).toContain('Discard 3 deliveries?');
  expect(await waiting(apart)).toHaveLength(3);
  expect(await actionsOf(apart, visit)).toEqual([]);
});

it('discards need a reason, act on what was shown, and leave one line each', async ({ apart }) => {
  await quarantined(apart, 2);
  const visit = await visitAs(apart);
  const confirm = await visit.get('/console/quarantine/discard?all=true');
  const [later = ''] = await quarantined(apart, 1);
  const form = formOf(confirm, '/console/quarantine/discard');

  expect((await visit.submit(form, { note: ' ' })).status).toBe(400);
  expect(await waiting(apart)).toHaveLength(3);
  const done = await visit.submit(form, { note: 'a test of team A' });

  expect(done.text).toContain('2 deliveries discarded');
  expect(await waiting(apart)).toEqual([later]);
  expect(await actionsOf(apart, visit)).toEqual(['quarantine.discard', 'quarantine.discard']);
});

it('an order of more than one call goes on under the same bound until all is done', async ({ apart }) => {
  await quarantined(apart, 1);
  // A release takes a hundred at once.
  await apart.relay.database.query(
    `insert into deliveries select (jsonb_populate_record(d, jsonb_build_object(
       'id', gen_random_uuid(), 'job_id', 'job_' || n, 'received_at', d.received_at - n * interval '1 ms'))).*
     from deliveries d, generate_series(1, 119) n where d.source = $1`,
    [apart.source],
  );
  await makeUnderstood(apart.relay.database, apart.source);
  const visit = await visitAs(apart);
  const confirm = await visit.get('/console/quarantine/release?all=true');
  expect(confirm.text).toContain('Release 120 deliveries?');
  await quarantined(apart, 1);

  const { first, second } = await submitTwice(visit, confirm, '/console/quarantine/release');
  const next = formOf(first, '/console/quarantine/release');
  expect(first.text).toContain('There are more: 120 deliveries in all');
  // The same step again offers the same next step.
  expect(formOf(second, '/console/quarantine/release')).toEqual(next);
  const last = await visit.submit(next);

  expect(last.text).toContain('120 deliveries released');
  expect(last.text).not.toContain('The preview showed');
  expect(await actionsOf(apart, visit)).toHaveLength(120);
});

it('a form without a key, or without the bound of its preview, does nothing', async ({ apart }) => {
  await quarantined(apart, 1);
  const visit = await visitAs(apart);
  const path = '/console/quarantine/discard';

  for (const form of [
    { all: 'true', note: 'x', to: new Date().toISOString() },
    { all: 'true', note: 'x', key: crypto.randomUUID() },
    { all: 'true', note: 'x', to: new Date().toISOString(), key: 'a key of somebody' },
  ]) {
    expect((await visit.post(path, form)).status).toBe(400);
  }
  expect(await waiting(apart)).toHaveLength(1);
});

it('copies of replays are not decided on one by one', async ({ apart }) => {
  await returned(apart, 1);
  await apart.relay.database.query(
    `with gone as (delete from outbox_held where source = $1 returning *)
     insert into replay_copies (position, replay_id, replay_of, replayed_by, source, job_id, status, late, recorded_at, data,
                                state, attempts, last_error)
     select sequence, gen_random_uuid(), sequence, 'a test', source, job_id, status, late, recorded_at, '{}', state, attempts,
            last_error
     from gone`,
    [apart.source],
  );
  const visit = await visitAs(apart);

  const list = await visit.get('/console/outbox?copies=true');

  expect(list.text).toContain('replay');
  expect(list.html).not.toContain('type="checkbox"');
  expect(list.links.map(({ text }) => text)).not.toContain('Retry');
});

it('an event that is pending is parked, after a page that asks', async ({ apart }) => {
  const [id = ''] = await returned(apart, 1);
  await apart.relay.database.query(
    `update outbox_held set state = 'pending', due_at = now() + interval '1 hour' where source = $1`,
    [apart.source],
  );
  const visit = await visitAs(apart);
  const link = (await visit.get('/console/outbox')).links.find(({ text }) => text === 'Park');
  const confirm = await visit.get(link?.href ?? '');
  expect(confirm.text).toContain('Park 1 event?');
  expect(confirm.text).toContain(id);

  const done = await visit.submit(formOf(confirm, '/console/outbox/park'));

  expect(done.text).toContain('1 event parked');
  expect(await statesOf(apart)).toEqual(['parked']);
});

it('without a choice the quarantine shows what waits, and says so', async ({ apart }) => {
  const visit = await visitConsole(apart.relay);
  const options = /<select name="state">(.*?)<\/select>/s;
  const { html } = await visit.get('/console/quarantine');
  expect(options.exec(html)?.[1]).toBe(
    '<option selected>waiting</option><option>released</option><option>discarded</option>',
  );
});
