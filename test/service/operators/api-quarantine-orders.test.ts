// Releases and discards of many deliveries: exactly those that were shown before, by their ids or by a filter and its bound.

import { randomUUID } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { type Operators, operators } from '../../support/operators.ts';
import { orderOne } from '../../support/orders.ts';
import { completed, deliver, newJobId, progress } from '../../support/sender.ts';
import { shareTestService } from '../../support/shared-service.ts';
import { openTransaction } from '../../support/transaction.ts';
import { seedQuarantine } from '../../support/waiting.ts';

type Item = { delivery_id: string; result: string; event_id?: string | null; reason: string | null };
type Page = { done: number; items?: Item[]; next_cursor: string | null };
type Preview = {
  matched: number;
  matched_exactly: boolean;
  to: string;
  sample: { id: string }[];
  trial?: { tried: number; releasable: number; reasons: { reason: string; count: number }[] };
};

const NOTE = 'a test of team A';

const shared = shareTestService();

/** Each test has a source of its own, and a token that reaches no other. */
let source: string;
let api: Operators;
beforeEach(async () => {
  source = newJobId();
  api = await operatorOf(source);
});

const operatorOf = (...sources: string[]) => operators(shared(), { role: 'operator', sources });

const seed = (of: Parameters<typeof seedQuarantine>[1] = {}) =>
  seedQuarantine(shared().database, { source, ...of });

/** As if their bodies had been understood all along. */
const makeUnderstood = (ids: readonly string[], body: { job_id: string; status: string }) =>
  shared().database.query(
    `update deliveries set job_id = $2, status = $3, body = convert_to($4, 'UTF8') where id = any($1::uuid[])`,
    [ids, body.job_id, body.status, JSON.stringify(body)],
  );

const waiting = async (of = source) =>
  (
    await shared().database.query<{ id: string }>(
      `select id from deliveries
       where source = $1 and outcome = 'quarantined' and released_at is null and discarded_at is null
       order by received_at, id`,
      [of],
    )
  ).map(({ id }) => id);

/** What the test's operator did. */
const logged = async (action: string) =>
  (
    await shared().database.query<{ subject: string }>(
      'select subject from operator_log where action = $1 and actor = $2 order by id',
      [action, api.token.name],
    )
  ).map(({ subject }) => subject);

const tryRelease = async (order: object) =>
  (await api.post<Preview>('/quarantine/release', { ...order, dry_run: true })).body;

const uuids = (count: number) => Array.from({ length: count }, () => randomUUID());

const resultsOf = (items: readonly Item[] | undefined) =>
  Object.fromEntries(items?.map(({ delivery_id, result }) => [delivery_id, result]) ?? []);

test('a release of ids answers each for itself, and each that was tried has its line in the log', async () => {
  const { database, webhooks } = shared();
  api = await operatorOf(source, 'default');
  const [known = '', unknown = '', given = ''] = await seed({ count: 3 });
  await makeUnderstood([known], completed('job_known'));
  await orderOne(api, 'quarantine/discard', given, { note: NOTE });
  const job = newJobId();
  await deliver(webhooks, completed(job));
  const [{ id: accepted } = { id: '' }] = await database.query<{ id: string }>(
    `select id from deliveries where outcome = 'accepted' and job_id = $1`,
    [job],
  );
  const nobody = randomUUID();

  const ids = [nobody, given, unknown, known.toUpperCase(), accepted, known];
  const { status, body } = await api.post<Page>('/quarantine/release', { ids });

  expect(status).toBe(200);
  expect(body.next_cursor).toBeNull();
  expect(body.items).toHaveLength(5);
  expect(resultsOf(body.items)).toEqual({
    [known]: 'accepted',
    [unknown]: 'still_quarantined',
    [given]: 'wrong_state',
    [accepted]: 'wrong_state',
    [nobody]: 'not_found',
  });
  expect(body.items).toEqual(
    expect.arrayContaining([
      { delivery_id: known, result: 'accepted', event_id: `${source}:job_known:completed`, reason: null },
      { delivery_id: unknown, result: 'still_quarantined', event_id: null, reason: 'unknown status' },
      {
        delivery_id: given,
        result: 'wrong_state',
        event_id: null,
        reason: 'it is not in quarantine any more: it was discarded; this cannot be undone',
      },
    ]),
  );
  expect((await logged('quarantine.release')).toSorted()).toEqual([known, unknown].toSorted());
});

test('a discard of ids answers each for itself', async () => {
  const [one = '', two = '', three = ''] = await seed({ count: 3 });
  const nobody = randomUUID();
  const first = await api.post<Page>('/quarantine/discard', {
    ids: [two, nobody],
    note: NOTE,
  });
  const again = await api.post<Page>('/quarantine/discard', { ids: [two, one], note: NOTE });

  expect(first.body).toEqual({
    done: 1,
    items: [
      { delivery_id: two, result: 'discarded', event_id: null, reason: null },
      { delivery_id: nobody, result: 'not_found', event_id: null, reason: null },
    ],
    next_cursor: null,
  });
  expect(resultsOf(again.body.items)).toEqual({ [one]: 'discarded', [two]: 'wrong_state' });
  expect(await waiting()).toEqual([three]);
  expect(await logged('quarantine.discard')).toEqual([two, one]);
  expect(
    await shared().database.query('select discard_note from deliveries where discarded_by = $1', [
      api.token.name,
    ]),
  ).toEqual([{ discard_note: NOTE }, { discard_note: NOTE }]);
});

test('the events of one job that are released by their ids keep their order, over several calls', async () => {
  const ids = await seed({ count: 20 });
  for (const [index, id] of ids.entries()) await makeUnderstood([id], progress('job_long', index));

  const items: Item[] = [];
  const perCall: number[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const order = { ids: ids.toReversed(), cursor };
    const page: Page = (await api.post<Page>('/quarantine/release', order)).body;
    items.push(...(page.items ?? []));
    perCall.push(page.items?.length ?? 0);
    cursor = page.next_cursor;
  }

  expect(items.map(({ delivery_id: id }) => id)).toEqual(ids);
  expect(perCall).toEqual([8, 8, 4]);
  expect(
    await shared().database.query(
      'select progress_percentage as at from events where source = $1 order by sequence',
      [source],
    ),
  ).toEqual(ids.map((_, at) => ({ at })));
});

test.each(['release', 'discard'])(
  'a dry run of a %s changes and records nothing, and counts',
  async (action) => {
    const ids = await seed({ count: 12 });
    await seed({ reason: 'cost_cents is missing' });
    const preview = async (order: object) =>
      (await api.post<Preview>(`/quarantine/${action}`, { ...order, dry_run: true })).body;

    const found = await preview({ filter: { reason: 'unknown status' } });
    expect(found).toMatchObject({ matched: 12, matched_exactly: true });
    expect(found.sample.map(({ id }) => id)).toEqual(ids.slice(0, 10));
    expect(await preview({ filter: { reason: 'unknown' } })).toMatchObject({ matched: 0, sample: [] });
    const [one = '', two = ''] = ids;
    const named = await preview({ ids: [two, randomUUID(), one] });
    expect(named).toMatchObject({ matched: 2, matched_exactly: true, sample: [{ id: one }, { id: two }] });
    expect(Math.abs(Date.parse(named.to) - Date.now())).toBeLessThan(60_000);
    expect(await waiting()).toHaveLength(13);
    expect(await logged(`quarantine.${action}`)).toEqual([]);
  },
);

test('a dry run of a release tries: it says how many would be released, and why the others would not', async () => {
  const known = await seed({ count: 2 });
  for (const id of known) await makeUnderstood([id], completed(newJobId()));
  const other = await seed({ count: 3 });
  const strange = await seed({ count: 1 });
  // Understood, but as of another job.
  await shared().database.query(
    `update deliveries set job_id = 'job_other', body = convert_to('{"job_id":"job_x","status":"processing","progress_percentage":1}', 'UTF8')
     where id = $1`,
    strange,
  );
  await shared().database.query('update deliveries set body = null, body_bytes = null where id = $1', [
    other[0],
  ]);
  const found = await tryRelease({ filter: {} });
  expect(found.trial).toMatchObject({ tried: 6, releasable: 2 });
  expect(found.trial?.reasons.map(({ count }) => count)).toEqual([2, 1, 1]);
  expect(found.trial?.reasons[0]?.reason).toContain('unknown status');
  expect(found.trial?.reasons.map(({ reason }) => reason)).toEqual(
    expect.arrayContaining(['its body is no longer kept', 'it is understood as of another job now']),
  );
  expect((await tryRelease({ ids: known })).trial).toEqual({ tried: 2, releasable: 2, reasons: [] });
  expect(await logged('quarantine.release')).toEqual([]);
  const { body: discard } = await api.post<Preview>('/quarantine/discard', { filter: {}, dry_run: true });
  expect(discard).not.toHaveProperty('trial');

  const { body: released } = await api.post<Page>('/quarantine/release', { filter: { to: found.to } });
  expect(released.done).toBe(found.trial?.releasable);
});

test('a dry run tries the oldest 1,000, and no more than 8 MiB of bodies', async () => {
  await seed({ count: 1_001 });
  expect(await tryRelease({ filter: {} })).toMatchObject({
    matched: 1_001,
    trial: { tried: 1_000, releasable: 0 },
  });
  await shared().database.query('update deliveries set body_bytes = 3 * 1024 * 1024 where source = $1', [
    source,
  ]);
  expect(await tryRelease({ filter: {} })).toMatchObject({ matched: 1_001, trial: { tried: 2 } });
});

test('a release with the bound of its dry run leaves alone what came later', async () => {
  // No other test leaves anything in the quarantine of the source that deliveries reach.
  api = await operatorOf('default');
  const ids = await seed({ source: 'default', count: 3 });
  for (const id of ids) await makeUnderstood([id], completed(newJobId()));
  const filter = { reason: 'unknown status' };
  const { body: found } = await api.post<Preview>('/quarantine/release', { filter, dry_run: true });
  await deliver(shared().webhooks, { job_id: newJobId(), status: 'paused' });

  const { body } = await api.post<Page>('/quarantine/release', { filter: { ...filter, to: found.to } });

  expect(body.items?.map(({ delivery_id: id, result }) => [id, result])).toEqual(
    ids.map((id) => [id, 'accepted']),
  );
  expect(await waiting('default')).toHaveLength(1);
});

test('the list and an order take a reason, word for word', async () => {
  const ids = await seed({ count: 2, reason: 'cost_cents is missing' });
  await seed({ count: 2, reason: 'cost_cents is missing; and more' });
  const query = `reason=${encodeURIComponent('cost_cents is missing')}`;

  const { body } = await api.get<{ items: { id: string }[] }>(`/quarantine?${query}`);
  expect(body.items.map(({ id }) => id)).toEqual(ids.toReversed());
  const order = { filter: { reason: 'cost_cents is missing' }, note: NOTE };
  expect((await api.post('/quarantine/discard', order)).body).toEqual({ done: 2, next_cursor: null });
  expect(await waiting()).toHaveLength(2);
});

test('a token that is limited to sources reaches no others: by ids they are not there', async () => {
  const [foreign = ''] = await seed();
  const another = newJobId();
  const [own = ''] = await seed({ source: another });
  const limited = await operatorOf(another);
  const ids = [foreign, own];

  expect((await limited.post<Preview>('/quarantine/discard', { ids, dry_run: true })).body).toMatchObject({
    matched: 1,
    sample: [{ id: own }],
  });
  expect(resultsOf((await limited.post<Page>('/quarantine/release', { ids })).body.items)).toEqual({
    [foreign]: 'not_found',
    [own]: 'still_quarantined',
  });
  expect(
    resultsOf((await limited.post<Page>('/quarantine/discard', { ids, note: NOTE })).body.items),
  ).toEqual({ [foreign]: 'not_found', [own]: 'discarded' });
  expect(await waiting()).toEqual([foreign]);
});

test('an order that waits for another about the same delivery learns what became of it', async () => {
  const [id = '', other = ''] = await seed({ count: 2 });
  await using before = await openTransaction(shared().database);
  await before.query(
    `update deliveries set discarded_at = now(), discarded_by = 'another', discard_note = '' where id = $1`,
    [id],
  );
  const order = api.post<Page>('/quarantine/discard', { ids: [id, other], note: NOTE });
  await expect
    .poll(() =>
      shared().database.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      ),
    )
    .toHaveLength(1);
  await before.query('commit');

  expect(resultsOf((await order).body.items)).toEqual({ [id]: 'wrong_state', [other]: 'discarded' });
});

test('an order of ids that is repeated under its key acts once and gets the first answer', async () => {
  const ids = await seed({ count: 2 });
  const release = () => api.post('/quarantine/release', { ids }, { key: 'once' });

  const [first, again] = [await release(), await release()];

  expect(again).toMatchObject({ status: 200, body: first.body });
  expect(again.headers.get('idempotency-replayed')).toBe('true');
  expect(await logged('quarantine.release')).toHaveLength(2);
});

test('only operators give orders', async () => {
  const ids = await seed();
  for (const role of ['viewer', 'auditor'] as const) {
    const caller = await operators(shared(), { role });
    for (const order of [{ ids }, { ids, dry_run: true }, { filter: {}, dry_run: true }]) {
      expect((await caller.post('/quarantine/release', order)).status).toBe(403);
      expect((await caller.post('/quarantine/discard', { note: NOTE, ...order })).status).toBe(403);
    }
  }
  expect(await waiting()).toEqual(ids);
});

test('an order that does not say clearly which deliveries is refused', async () => {
  for (const [action, order, message] of [
    ['release', {}, 'exactly one of ids and filter must be given'],
    ['release', { ids: uuids(1), filter: {} }, 'exactly one of ids and filter must be given'],
    ['release', { ids: uuids(101) }, 'ids: must be at most 100 in one request'],
    ['release', { ids: ['1'] }, 'ids.0: must be a UUID'],
    ['release', { ids: [] }, 'ids: must not be empty'],
    ['release', { ids: uuids(1), cursor: 'AAAA' }, 'cursor: is not one of this action with this order'],
    ['discard', { note: NOTE }, 'exactly one of ids and filter must be given'],
    ['discard', { ids: uuids(1) }, 'note: must be given'],
    ['discard', { note: NOTE, ids: uuids(1_001) }, 'ids: must be at most 1,000 in one request'],
  ] as const) {
    const answer = await api.post(`/quarantine/${action}`, order);
    expect(answer).toMatchObject({ status: 400, body: { message: expect.stringContaining(message) } });
  }
});

test('a preview counts to 10,000, and 1,000 ids are discarded in one call', async () => {
  const ids = await seed({ count: 10_001 });
  const filter = {};

  const { body } = await api.post<Preview>('/quarantine/discard', { filter, dry_run: true });
  expect(body).toMatchObject({ matched: 10_000, matched_exactly: false });
  const thousand = ids.slice(500, 1_500);
  const done = await api.post<Page>('/quarantine/discard', { ids: thousand, note: NOTE });
  expect(done.body).toMatchObject({ done: 1_000, next_cursor: null });
  expect(done.body.items?.map(({ delivery_id: id }) => id)).toEqual(thousand);
  expect(await logged('quarantine.discard')).toEqual(thousand);
});
