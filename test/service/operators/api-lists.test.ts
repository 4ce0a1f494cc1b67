import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SEEDED } from '../../../bench/audit-seed.ts';
import { createHistory, type History } from '../../support/history.ts';
import { holdOutbox } from '../../support/ledger.ts';
import { OUTBOX } from '../../support/outbox.ts';
import { type Answer, operators, type Operators } from '../../support/operators.ts';
import { PUBLICATIONS } from '../../support/publications.ts';
import { completed, deliver, failed, newJobId, progress } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';

type Item = Record<string, unknown>;
type Page = { items: Item[]; next_cursor: string | null };

/** Follows the cursors to the end. */
async function walk(api: Operators, path: string): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | null = null;
  do {
    const separator = path.includes('?') ? '&' : '?';
    const { status, body, text }: Answer<Page> = await api.get<Page>(
      cursor === null ? path : `${path}${separator}cursor=${encodeURIComponent(cursor)}`,
    );
    expect([status, text.slice(0, 300)]).toEqual([200, expect.any(String)]);
    items.push(...body.items);
    cursor = body.next_cursor;
  } while (cursor !== null);
  return items;
}

const day = (days: number) => new Date(Date.now() - days * 24 * 60 * 60 * 1_000).toISOString();

const COUNT = 4_000;
const { sources, secrets, errorCodes } = SEEDED;

describe('on a month of history', () => {
  let history: History;
  let service: TestService;
  let api: Operators;
  beforeAll(async () => {
    history = await createHistory(COUNT);
    await holdOutbox(history.database);
    service = await startTestService({ database: history.database });
    api = await operators(service, { role: 'viewer' });
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    await history[Symbol.asyncDispose]();
  });

  const [from, to] = [day(20), day(10)];

  test.each([
    ['deliveries', '', 'true'],
    ['deliveries', 'source=studio', `source = 'studio'`],
    ['deliveries', 'outcome=duplicate', `outcome = 'duplicate'`],
    ['deliveries', 'status=exploded', `status = 'exploded'`],
    ['deliveries', 'kind=progress&outcome=accepted', `status = 'processing' and outcome = 'accepted'`],
    ['deliveries', 'kind=progress&status=completed', 'false'],
    ['deliveries', `error_code=${errorCodes.common}`, `error_code = '${errorCodes.common}'`],
    ['deliveries', `secret_fingerprint=${secrets.old}`, `secret_fingerprint = '${secrets.old}'`],
    [
      'deliveries',
      'remote_address=10.0.0.2&source=archive',
      `remote_address = '10.0.0.2' and source = 'archive'`,
    ],
    ['deliveries', 'job_id_prefix=batch-', `job_id like 'batch-%'`],
    ['deliveries', 'job_id_prefix=batch-&outcome=conflict', `job_id like 'batch-%' and outcome = 'conflict'`],
    ['deliveries', `from=${from}&to=${to}`, `received_at >= '${from}' and received_at < '${to}'`],
    [
      'deliveries',
      `from=${from}&outcome=quarantined`,
      `received_at >= '${from}' and outcome = 'quarantined'`,
    ],
    ['events', '', 'true'],
    ['events', 'source=default&status=failed', `source = 'default' and status = 'failed'`],
    ['events', 'kind=completed', `status = 'completed'`],
    ['events', 'late=true', 'late'],
    ['events', 'late=false&source=tiny', `not late and source = 'tiny'`],
    ['events', `error_code=${errorCodes.common}`, `error_code = '${errorCodes.common}'`],
    ['events', `job_id_prefix=job_0&to=${to}`, `job_id like 'job\\_0%' and recorded_at < '${to}'`],
    ['publications', 'result=nacked', `result = 'nacked'`],
    ['publications', 'source=studio', `source = 'studio'`],
    [
      'publications',
      'job_id_prefix=batch-',
      `exists (select from events e where e.sequence = event_sequence and e.job_id like 'batch-%')`,
    ],
    ['publications', `from=${from}&result=confirmed`, `published_at >= '${from}' and result = 'confirmed'`],
    ['jobs', '', 'true'],
    ['jobs', 'source=archive', `source = 'archive'`],
    ['jobs', 'state=failed', `last_status = 'failed'`],
    ['jobs', 'state=stuck', `last_status = 'processing' and first_seen_at < now() - interval '1 hour'`],
    [
      'jobs',
      'state=stuck&stuck_after=1728000',
      `last_status = 'processing' and first_seen_at < now() - interval '20 days'`,
    ],
    ['jobs', 'job_id_prefix=batch-&source=default', `job_id like 'batch-%' and source = 'default'`],
    ['quarantine', '', `outcome = 'quarantined'`],
    ['quarantine', 'source=default&status=exploded', `outcome = 'quarantined' and source = 'default'`],
    ['quarantine', 'state=waiting&source=default', `outcome = 'quarantined' and source = 'default'`],
    ['quarantine', 'state=released', 'false'],
    ['quarantine', 'state=discarded', 'false'],
    ['outbox', '', 'true'],
    ['outbox', 'state=parked', `state = 'parked'`],
    ['outbox', 'state=returned&copies=false', `state = 'returned' and replay_id is null`],
    ['outbox', 'copies=true', 'replay_id is not null'],
    ['outbox', 'source=default&state=returned', `source = 'default' and state = 'returned'`],
  ])('%s?%s gives each of the rows once, in order', async (list, query, where) => {
    const table = list === 'quarantine' ? 'deliveries' : list;
    const [order, id] = {
      deliveries: ['received_at desc, id desc', 'id::text'],
      events: ['recorded_at desc, sequence desc', 'sequence::text'],
      publications: ['published_at desc, id desc', 'id::text'],
      jobs: ['first_seen_at desc, source desc, job_id desc', `source || ' ' || job_id`],
      outbox: ['sequence', 'sequence::text'],
    }[table] as [string, string];
    const tables: Record<string, string> = { outbox: OUTBOX, publications: `${PUBLICATIONS} publications` };
    const wanted = await history.database.query<{ id: string }>(
      `select ${id} as id from ${tables[table] ?? table} where ${where} order by ${order}`,
    );

    const items = await walk(api, `/${list}?limit=200${query && `&${query}`}`);

    const idOf = (item: Item) => {
      if (table === 'jobs') return `${String(item['source'])} ${String(item['job_id'])}`;
      return String(table === 'events' ? item['sequence'] : item['id']);
    };
    expect(items.map(idOf)).toEqual(wanted.map((row) => row.id));
  });

  test('a list walked while deliveries arrive gives each that was there before exactly once', async () => {
    const before = await history.database.query<{ id: string }>('select id from deliveries');
    const found: string[] = [];
    let cursor = '';
    let sent = 0;
    do {
      const { body } = await api.get<Page>(`/deliveries?limit=150${cursor && `&cursor=${cursor}`}`);
      found.push(...body.items.map((item) => String(item['id'])));
      const { status } = await deliver(service.webhooks, completed(newJobId()));
      expect(status).toBe(202);
      sent += 1;
      cursor = body.next_cursor ?? '';
    } while (cursor !== '');
    expect(sent).toBeGreaterThan(20);
    expect(new Set(found).size).toBe(found.length);
    expect(before.filter(({ id }) => !found.includes(id))).toEqual([]);
    await history.database.query(`delete from deliveries where received_at > now() - interval '50 seconds'`);
  });

  test('rows of one moment, or a microsecond apart, are each given once', async () => {
    await history.database.query(
      `insert into deliveries (id, received_at, source, outcome, http_status, path, headers)
       select gen_random_uuid(), date_trunc('second', now()) + g / 3 * interval '1 microsecond', 'dense', 'refused', 413,
         '/webhooks', '{}'
       from generate_series(1, 100) g`,
    );
    const wanted = await history.database.query<{ id: string }>(
      `select id from deliveries where source = 'dense' order by received_at desc, id desc`,
    );

    const items = await walk(api, '/deliveries?source=dense&limit=7');

    expect(items.map((item) => item['id'])).toEqual(wanted.map(({ id }) => id));
    await history.database.query(`delete from deliveries where source = 'dense'`);
  });

  test('a cursor of another list, of other filters, or none at all is refused', async () => {
    const { body } = await api.get<Page>('/deliveries?limit=1&source=default');
    const cursor = body.next_cursor;
    for (const path of [
      `/deliveries?cursor=${cursor}`,
      `/deliveries?source=studio&cursor=${cursor}`,
      `/quarantine?source=default&cursor=${cursor}`,
      '/deliveries?cursor=garbage',
      `/deliveries?cursor=${Buffer.from('["x","y"]').toString('base64url')}`,
      '/outbox?cursor=1',
    ]) {
      const answer = await api.get(path);
      expect([path, answer.status, answer.body['error']]).toEqual([path, 400, 'invalid_cursor']);
    }
    const next = await api.get<Page>(`/deliveries?source=default&limit=7&cursor=${cursor}`);
    expect(next.body.items).toHaveLength(7);
  });

  test('a cursor whose values were tampered with is refused and reaches no statement', async () => {
    const { body } = await api.get<Page>('/deliveries?limit=1');
    const parts = JSON.parse(Buffer.from(String(body.next_cursor), 'base64url').toString()) as string[];
    for (const [index, value] of [
      [1, '2026-02-30T00:00:00.000000Z'],
      [1, '0000-01-01T00:00:00.000000Z'],
      [1, `'; drop table deliveries; --`],
      [2, 'no-uuid'],
    ] as const) {
      const cursor = Buffer.from(JSON.stringify(parts.with(index, value))).toString('base64url');
      const answer = await api.get(`/deliveries?cursor=${cursor}`);
      expect([answer.status, answer.body['error']]).toEqual([400, 'invalid_cursor']);
    }
  });

  test('a token that is limited to some sources sees those, and nothing of others', async () => {
    const limited = await operators(service, { role: 'auditor', sources: ['archive', 'tiny'] });
    const others = await history.database.query<{ id: string; job_id: string }>(
      `select id, job_id from deliveries where source = 'default' and job_id is not null limit 1`,
    );
    for (const list of ['jobs', 'deliveries', 'events', 'publications', 'quarantine', 'outbox']) {
      const items = await walk(limited, `/${list}?limit=200`);
      const all = await walk(api, `/${list}?limit=200`);
      const own = all.filter((item) => ['archive', 'tiny'].includes(String(item['source'])));
      expect({ list, items }).toEqual({ list, items: own });
      expect((await limited.get(`/${list}?source=default`)).status).toBe(403);
      expect((await limited.get(`/${list}?source=tiny`)).status).toBe(200);
    }
    const [other] = others;
    expect((await limited.get(`/deliveries/${other?.id}`)).status).toBe(403);
    expect((await limited.get(`/deliveries/${other?.id}/body`)).status).toBe(403);
    expect((await limited.get(`/jobs/default/${other?.job_id}`)).status).toBe(403);
    expect((await limited.get(`/deliveries?job_id=${other?.job_id}`)).body['items']).toEqual([]);
  });

  test('the outbox tells how much waits, and since when', async () => {
    const { body } = await api.get('/outbox?limit=1');
    const rows = await history.database.query<{ state: string; count: number }>(
      `select state, count(*)::int as count from ${OUTBOX} where replay_id is null group by state`,
    );
    const {
      rows: [oldest],
    } = await sql<{ at: string }>`
      select to_char(recorded_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at from outbox_batches
        order by first limit 1`.execute(history.connection.db);
    expect(body).toMatchObject({
      counts: Object.fromEntries(rows.map(({ state, count }) => [state, count])),
      counts_complete: true,
      oldest_pending_at: oldest?.at,
    });
    const limited = await operators(service, { role: 'viewer', sources: [sources.rare] });
    expect((await limited.get('/outbox')).body).toMatchObject({
      counts: { pending: 0, returned: 0, parked: 0 },
      oldest_pending_at: null,
      items: [],
    });
  });
});

describe('one at a time', () => {
  let service: TestService;
  let api: Operators;
  beforeAll(async () => {
    service = await startTestService();
    api = await operators(service, { role: 'auditor' });
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
  });

  test('a delivery is shown with its headers, and its body byte for byte as it came', async () => {
    const job = newJobId();
    const body = `{"job_id":"${job}", "status" : "exploded","n":1.0000000000000000001,"é":"\\u0000"}\n`;
    await deliver(service.webhooks, body, { headers: { 'user-agent': 'a sender' } });
    const [item] = await walk(api, `/deliveries?job_id=${job}`);
    const id = String(item?.['id']);

    const { status, body: delivery } = await api.get(`/deliveries/${id.toUpperCase()}`);
    const shown = await api.fetch(`/deliveries/${id}/body`);

    expect(status).toBe(200);
    expect(delivery).toMatchObject({
      ...item,
      outcome: 'quarantined',
      headers: { 'user-agent': 'a sender' },
      body_bytes: Buffer.byteLength(body),
      body_kept: true,
      body_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(Buffer.from(await shown.arrayBuffer()).equals(Buffer.from(body))).toBe(true);
    expect(shown.headers.get('content-type')).toBe('application/octet-stream');
    expect(shown.headers.get('content-disposition')).toContain('attachment');
    expect(shown.headers.get('x-content-type-options')).toBe('nosniff');
    const log = await service.database.query<Item>(
      `select actor, subject, source from operator_log where action = 'body.read'`,
    );
    expect(log).toEqual([{ actor: api.token.name, subject: id, source: 'default' }]);
  });

  test('a body is for auditors, and a body that was not kept is body_not_kept', async () => {
    const job = newJobId();
    await deliver(service.webhooks, completed(job));
    await deliver(service.webhooks, completed(job));
    const [duplicate, accepted] = await walk(api, `/deliveries?job_id=${job}`);
    const viewer = await operators(service, { role: 'viewer' });

    expect((await viewer.get(`/deliveries/${String(accepted?.['id'])}/body`)).status).toBe(403);
    const answer = await api.get(`/deliveries/${String(duplicate?.['id'])}/body`);
    expect([answer.status, answer.body['error']]).toEqual([404, 'body_not_kept']);
    expect((await api.get(`/deliveries/${randomUUID()}/body`)).body['error']).toBe('not_found');
    expect((await api.get(`/deliveries/${randomUUID()}`)).body['error']).toBe('not_found');
    expect((await api.get('/deliveries/no-uuid')).body['error']).toBe('invalid_request');
  });

  test('an event is shown by its id, whatever the job is called, with its publications', async () => {
    const job = `a:b/c%2F?&=é'";--`;
    await deliver(service.webhooks, failed(job));
    await deliver(service.webhooks, progress(job, 5));
    const id = `default:${job}:failed`;
    await expect
      .poll(async () => (await api.get<{ items: Item[] }>('/publications?limit=200')).body.items.length)
      .toBeGreaterThanOrEqual(2);

    const { status, body } = await api.get(`/events/${encodeURIComponent(id)}`);

    expect(status).toBe(200);
    expect(body).toMatchObject({
      id,
      job_id: job,
      status: 'failed',
      kind: 'failed',
      error_code: 'INVALID_INPUT',
      late: false,
      publication: 'returned',
      publications: [{ event_id: id, job_id: job, result: 'returned', replay_id: null }],
    });
    expect(await walk(api, `/events?job_id=${encodeURIComponent(job)}`)).toHaveLength(2);
    expect(await walk(api, `/publications?event_id=${encodeURIComponent(id)}`)).toHaveLength(1);
    expect(await walk(api, `/outbox?job_id=${encodeURIComponent(job)}`)).toHaveLength(2);
    expect((await api.get('/events/default:nix:completed')).body['error']).toBe('not_found');
    expect((await api.get('/events/nonsense')).status).toBe(404);
  });

  test('parameters that mean nothing are told by name', async () => {
    for (const [path, name] of [
      ['/deliveries?limit=1e9', 'limit'],
      ['/deliveries?limit=0', 'limit'],
      ['/deliveries?outcome=nice', 'outcome'],
      ['/deliveries?from=yesterday', 'from'],
      ['/deliveries?from=0000-01-01T00:00:00Z', 'from'],
      ['/deliveries?sauce=1', 'sauce'],
      ['/jobs?stuck_after=100', 'stuck_after'],
      ['/jobs?state=stuck&stuck_after=1', 'stuck_after'],
      ['/publications?replay_id=1', 'replay_id'],
      ['/events?late=maybe', 'late'],
    ] as const) {
      const { status, body } = await api.get(path);
      expect([path, status, body['error']]).toEqual([path, 400, 'invalid_request']);
      expect(body['message']).toContain(name);
    }
  });
});
