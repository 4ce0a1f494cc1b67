import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { type Operators, operators } from '../../support/operators.ts';
import { orderOne } from '../../support/orders.ts';
import { completed, deliver, newJobId, newSource } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { shareTestService } from '../../support/shared-service.ts';
import { openTransaction } from '../../support/transaction.ts';

type Discarded = { id: string; discarded_at: string; discarded_by: string; discard_note: string };
type Preview = { matched: number; matched_exactly: boolean; to: string; sample: { id: string }[] };
type Page = { done: number; next_cursor: string | null };

/** Each test has a source of its own, and mostly a token that sees no other. */
const shared = shareTestService();

const NOTE = 'a test of team A, and nothing that anybody waits for';

/** A delivery of an unknown status. Returns its id. */
async function quarantine(
  { webhooks, database }: TestService,
  { job = newJobId(), source = 'default' }: { job?: string; source?: string } = {},
): Promise<string> {
  await deliver(webhooks, { job_id: job, status: 'paused' });
  const [row] = await database.query<{ id: string }>(
    'update deliveries set source = $2 where job_id = $1 returning id',
    [job, source],
  );
  return row?.id ?? '';
}

/** As if its body had been understood all along. */
const makeUnderstood = ({ database }: TestService, id: string) =>
  database.query(
    `update deliveries set status = 'completed', body = convert_to(replace($2, 'JOB', job_id), 'UTF8') where id = $1`,
    [id, JSON.stringify(completed('JOB'))],
  );

const idsIn = async (api: Operators, path: string) => {
  const { body } = await api.get<{ items: { id: string }[] }>(path);
  return body.items.map(({ id }) => id);
};

test('a discarded delivery no longer waits, and is kept with its body, who discarded it, when and why', async () => {
  const service = shared();
  const source = newSource();
  const api = await operators(service, { role: 'operator', name: 'Ada', sources: [source] });
  const [waiting, id] = [await quarantine(service, { source }), await quarantine(service, { source })];

  expect(await orderOne(api, 'quarantine/discard', id, { note: NOTE })).toMatchObject({
    result: 'discarded',
  });

  const { body } = await api.get<Discarded>(`/deliveries/${id}`);
  expect(body).toMatchObject({
    id,
    outcome: 'quarantined',
    body_kept: true,
    released_at: null,
    discarded_by: 'Ada',
    discard_note: NOTE,
  });
  expect(Math.abs(Date.parse(body.discarded_at) - Date.now())).toBeLessThan(60_000);
  expect(await idsIn(api, '/quarantine')).toEqual([waiting]);
  expect(await idsIn(api, '/quarantine?state=waiting')).toEqual([waiting]);
  expect(await idsIn(api, '/quarantine?state=discarded')).toEqual([id]);
  expect(await idsIn(api, '/quarantine?state=released')).toEqual([]);
  expect(await idsIn(api, '/deliveries?outcome=quarantined')).toEqual([id, waiting]);
  expect((await api.get(`/deliveries/${id}/body`)).text).toContain('paused');
  const exported = await api.get('/export?list=quarantine&format=csv&state=discarded');
  expect(exported.text).toContain(NOTE);
});

test('the operator log and the job’s story have a line for a discard, with its note', async () => {
  const service = shared();
  const [source, job] = [newSource(), newJobId()];
  const api = await operators(service, { role: 'admin', name: 'Ada' });
  const id = await quarantine(service, { job, source });
  await orderOne(api, 'quarantine/discard', id, { note: NOTE });

  expect((await api.get(`/operator-log?action=quarantine.discard&source=${source}`)).body).toMatchObject({
    items: [{ actor: 'Ada', source, subject: id, detail: { note: NOTE, reason: 'unknown status' } }],
  });
  expect((await api.get(`/jobs/${source}/${job}`)).body).toMatchObject({
    items: [
      { what: 'delivery', delivery: { discarded_by: 'Ada', discard_note: NOTE } },
      { what: 'operator', operator: { action: 'quarantine.discard', actor: 'Ada', note: NOTE } },
    ],
  });
});

test.each(['   ', '\u202E', '\u200B \u2060', '\u0301', '\u3164'])(
  'a note in which nothing can be seen is refused: %j',
  async (note) => {
    const service = shared();
    const source = newSource();
    const api = await operators(service, { role: 'operator', sources: [source] });
    const id = await quarantine(service, { source });
    const fault = { status: 400, body: { message: 'note: must have a visible character' } };

    expect(await orderOne(api, 'quarantine/discard', id, { note })).toMatchObject(fault);
    expect(await api.post('/quarantine/discard', { filter: {}, note })).toMatchObject(fault);
    expect(await api.post('/replays', { filter: { kind: 'failed' }, note })).toMatchObject(fault);
    expect(await idsIn(api, '/quarantine')).toEqual([id]);
  },
);

test('a note is kept without the white space around it', async () => {
  const service = shared();
  const source = newSource();
  const api = await operators(service, { role: 'operator', sources: [source] });
  const id = await quarantine(service, { source });
  await orderOne(api, 'quarantine/discard', id, { note: ` ${NOTE}\n` });
  const { body } = await api.get<Discarded>(`/deliveries/${id}`);
  expect(body.discard_note).toBe(NOTE);
});

test('what is discarded can be neither released nor discarded again, and says so', async () => {
  const service = shared();
  const source = newSource();
  const api = await operators(service, { role: 'operator', sources: [source] });
  const id = await quarantine(service, { source });
  await makeUnderstood(service, id);
  await orderOne(api, 'quarantine/discard', id, { note: NOTE });

  for (const action of [
    orderOne(api, 'quarantine/release', id),
    orderOne(api, 'quarantine/discard', id, { note: 'another' }),
  ]) {
    expect(await action).toMatchObject({
      result: 'wrong_state',
      reason: expect.stringContaining('it was discarded; this cannot be undone'),
    });
  }

  expect((await api.post('/quarantine/release', { filter: {} })).body).toMatchObject({ items: [] });
  expect((await api.post('/quarantine/discard', { filter: {}, note: NOTE })).body).toEqual({
    done: 0,
    next_cursor: null,
  });
  expect((await api.get(`/deliveries/${id}`)).body).toMatchObject({ released_at: null, discard_note: NOTE });
});

test('what was released, was never in quarantine, is not there or not theirs is not discarded', async () => {
  const service = shared();
  const source = newSource();
  const api = await operators(service, { role: 'operator' });
  const limited = await operators(service, { role: 'operator', sources: [newSource()] });
  const auditor = await operators(service, { role: 'auditor' });
  const [released, foreign] = [await quarantine(service, { source }), await quarantine(service, { source })];
  await makeUnderstood(service, released);
  await orderOne(api, 'quarantine/release', released);
  const job = newJobId();
  await deliver(service.webhooks, completed(job));
  const [accepted] = await idsIn(api, `/deliveries?outcome=accepted&job_id=${job}`);
  const discard = (id: string, caller = api) => orderOne(caller, 'quarantine/discard', id, { note: NOTE });

  expect(await discard(released)).toMatchObject({
    result: 'wrong_state',
    reason: expect.stringContaining('released'),
  });
  expect(await discard(accepted ?? '')).toMatchObject({ result: 'wrong_state' });
  expect((await discard(randomUUID())).result).toBe('not_found');
  expect((await discard('1')).status).toBe(400);
  expect((await discard(foreign, limited)).result).toBe('not_found');
  expect((await discard(foreign, auditor)).status).toBe(403);
  const ofForeign = { filter: { source }, note: NOTE };
  expect((await limited.post('/quarantine/discard', ofForeign)).status).toBe(403);
  expect((await limited.post('/quarantine/discard', { filter: {}, note: NOTE })).body).toEqual({
    done: 0,
    next_cursor: null,
  });
  expect((await limited.post('/quarantine/discard', { filter: {}, dry_run: true })).body).toMatchObject({
    matched: 0,
    sample: [],
  });
  expect(await idsIn(api, `/quarantine?source=${source}`)).toEqual([foreign]);
});

test('a note has to say why, and is of a bounded length', async () => {
  const service = shared();
  const source = newSource();
  const api = await operators(service, { role: 'operator', sources: [source] });
  const id = await quarantine(service, { source });

  for (const body of [{}, { note: '' }, { note: 'x'.repeat(501) }, { note: 1 }]) {
    for (const which of [{ ids: [id] }, { filter: {} }]) {
      const answer = await api.post('/quarantine/discard', { ...which, ...body });
      expect(answer).toMatchObject({ status: 400, body: { message: expect.stringContaining('note: ') } });
    }
  }
  expect(await idsIn(api, '/quarantine')).toEqual([id]);
  expect((await orderOne(api, 'quarantine/discard', id, { note: 'é'.repeat(500) })).result).toBe('discarded');
});

test('a dry run counts and shows what would be discarded, and changes and records nothing', async () => {
  const service = shared();
  const [source, other] = [newSource(), newSource()];
  const api = await operators(service, { role: 'operator', sources: [source, other] });
  const admin = await operators(service);
  const ids: string[] = [];
  for (let count = 0; count < 12; count++) ids.push(await quarantine(service, { source }));
  await quarantine(service, { source: other });

  const order = { filter: { source, status: 'paused' }, dry_run: true };
  const { status, body } = await api.post<Preview>('/quarantine/discard', order);

  expect({ status, ...body }).toMatchObject({ status: 200, matched: 12, matched_exactly: true });
  expect(body.sample.map(({ id }) => id)).toEqual(ids.slice(0, 10));
  expect(await idsIn(api, '/quarantine')).toHaveLength(13);
  expect(await idsIn(admin, `/operator-log?action=quarantine.discard&token_id=${api.token.id}`)).toEqual([]);
});

test('what comes in after a dry run is not discarded with its time, and waits', async () => {
  const service = shared();
  const source = newSource();
  const api = await operators(service, { role: 'operator', sources: [source] });
  await quarantine(service, { source });
  const { body: preview } = await api.post<Preview>('/quarantine/discard', { filter: {}, dry_run: true });
  const later = await quarantine(service, { source });

  const order = { filter: { to: preview.to }, note: NOTE };
  expect((await api.post('/quarantine/discard', order)).body).toEqual({ done: 1, next_cursor: null });
  expect(await idsIn(api, '/quarantine')).toEqual([later]);
});

test('many are discarded in calls of a bounded size, each with a line in the operator log', async () => {
  const service = shared();
  const source = newSource();
  const api = await operators(service, { role: 'operator', sources: [source] });
  const admin = await operators(service);
  const jobs = Array.from({ length: 7 }, () => `bulk-${newJobId()}`);
  for (const job of jobs) await quarantine(service, { job, source });
  const other = await quarantine(service, { source });

  const pages: Page[] = [];
  let cursor: string | null = null;
  do {
    const { body }: { body: Page } = await api.post<Page>('/quarantine/discard', {
      filter: { job_id_prefix: 'bulk-' },
      note: NOTE,
      limit: 3,
      ...(cursor !== null && { cursor }),
    });
    pages.push(body);
    cursor = body.next_cursor;
  } while (cursor !== null);

  expect(pages.map(({ done }) => done)).toEqual([3, 3, 1]);
  expect(await idsIn(api, '/quarantine')).toEqual([other]);
  expect(await idsIn(admin, `/operator-log?action=quarantine.discard&source=${source}`)).toHaveLength(7);
  const tooMany = await api.post('/quarantine/discard', { filter: {}, note: NOTE, limit: 1_001 });
  expect(tooMany.status).toBe(400);
});

test('a discard that is repeated under its key gets the first answer, and is logged once', async () => {
  const service = shared();
  const source = newSource();
  const api = await operators(service, { role: 'admin' });
  const id = await quarantine(service, { source });
  const discard = () => orderOne(api, 'quarantine/discard', id, { note: NOTE, key: 'once' });

  const [first, second] = [await discard(), await discard()];

  expect([first.status, second.status]).toEqual([200, 200]);
  expect(first.result).toBe('discarded');
  expect(second).toEqual(first);
  expect(await idsIn(api, `/operator-log?action=quarantine.discard&source=${source}`)).toHaveLength(1);
});

test('of a release and a discard at once exactly one wins, and the row says which', async () => {
  const service = shared();
  const source = newSource();
  const api = await operators(service, { role: 'operator', sources: [source] });

  for (let round = 0; round < 8; round++) {
    const id = await quarantine(service, { source });
    await makeUnderstood(service, id);
    const answers = await Promise.all([
      orderOne(api, 'quarantine/release', id),
      orderOne(api, 'quarantine/discard', id, { note: NOTE }),
      orderOne(api, 'quarantine/release', id),
      orderOne(api, 'quarantine/discard', id, { note: NOTE }),
    ]);

    const results = answers.map(({ result }) => String(result));
    const isReleased = results.includes('accepted');
    const won = isReleased ? 'accepted' : 'discarded';
    expect(results.toSorted()).toEqual([won, 'wrong_state', 'wrong_state', 'wrong_state'].toSorted());
    const { body } = await api.get(`/deliveries/${id}`);
    expect({
      released: body['released_at'] !== null,
      discarded: body['discarded_at'] !== null,
    }).toEqual({ released: isReleased, discarded: !isReleased });
  }
});

test('a discard of all leaves alone what another transaction has locked, and does not wait for it', async () => {
  await using service = await startTestService();
  const api = await operators(service, { role: 'operator' });
  const [locked] = [await quarantine(service), await quarantine(service)];
  await using release = await openTransaction(service.database);
  await release.query('select from deliveries where id = $1 for update', [locked]);

  const { body } = await api.post('/quarantine/discard', { filter: {}, note: NOTE });
  await release.rollback();

  expect(body).toEqual({ done: 1, next_cursor: null });
  expect(await idsIn(api, '/quarantine')).toEqual([locked]);
});
