// Who may ask the operators' side, how often, and what is left of it in the operator log.

import request from 'supertest';
import { describe, expect, test } from 'vitest';
import { createTestDatabase } from '../../support/database.ts';
import { newToken, type Operators, operators, read } from '../../support/operators.ts';
import { openTransaction } from '../../support/transaction.ts';
import { startProxy } from '../../support/proxy.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { shareTestService } from '../../support/shared-service.ts';

const shared = shareTestService();

const MISSING = { error: 'unauthorized', message: 'Authorization header required' };
const INVALID = { error: 'unauthorized', message: 'invalid or expired API token' };
const FORBIDDEN = { error: 'forbidden', message: 'insufficient permissions for this resource' };

const RATE_HEADERS = {
  'x-ratelimit-limit': expect.stringMatching(/^\d+$/),
  'x-ratelimit-remaining': expect.stringMatching(/^\d+$/),
  'x-ratelimit-reset': expect.stringMatching(/^\d{10}$/),
};

async function ask(relay: TestService, path: string, authorization?: string) {
  const answer = await fetch(`${relay.operators}${path}`, {
    headers: authorization === undefined ? {} : { authorization },
  });
  return { ...(await read(answer)), head: Object.fromEntries(answer.headers) };
}

/** The tokens that a caller of this name has made. */
const tokensMadeBy = (relay: TestService, { token }: Operators) =>
  relay.database.query('select id from tokens where created_by = $1', [token.name]);

/** Any role but a scraper's may read it. */
const replicas = '/api/v1/replicas';

describe('a token', () => {
  test('that is missing, unknown, malformed or of the other environment gives no access', async () => {
    const relay = shared();
    const { value: live } = await newToken(relay.database, { environment: 'live' });
    const { value } = await newToken(relay.database);
    const wrong = `thk_test_${'A'.repeat(43)}`;

    expect(await ask(relay, replicas)).toMatchObject({ status: 401, body: MISSING });
    for (const header of [
      `Bearer ${wrong}`,
      `Bearer ${live}`,
      `Bearer ${value}x`,
      `Bearer ${value.slice(0, -1)}`,
      value,
      `Basic ${value}`,
      'Bearer',
      'Bearer a b',
      `Bearer ${'x'.repeat(8_000)}`,
    ]) {
      expect(await ask(relay, replicas, header)).toMatchObject({ status: 401, body: INVALID });
    }
    expect(await ask(relay, replicas, `bearer  ${value}`)).toMatchObject({ status: 200 });
  });

  test('may do what its role allows and no more', async () => {
    const relay = shared();
    const paths = [replicas, '/api/v1/operator-log', '/api/v1/tokens'];
    const needed = ['viewer', 'auditor', 'admin'];
    const allowed = { scraper: 0, viewer: 1, auditor: 2, operator: 2, admin: 3 } as const;

    for (const [role, count] of Object.entries(allowed)) {
      const { value } = await newToken(relay.database, { role: role as keyof typeof allowed });
      const answers = await Promise.all(paths.map((path) => ask(relay, path, `Bearer ${value}`)));
      expect({ role, statuses: answers.map(({ status }) => status) }).toEqual({
        role,
        statuses: paths.map((_path, index) => (index < count ? 200 : 403)),
      });
      expect(answers.slice(count).map(({ body }) => body)).toEqual(
        needed.slice(count).map((one) => ({ ...FORBIDDEN, message: `this needs the role ${one}` })),
      );
    }
  });

  test('that an admin creates is shown once, kept as a hash, works at once, and is refused after it is revoked', async () => {
    const relay = shared();
    const admin = await operators(relay, { name: 'the boss' });
    const expires_at = new Date(Date.now() + 60_000).toISOString();
    const made = await admin.post<{ id: string; value: string }>('/tokens', {
      name: 'the console',
      role: 'viewer',
      sources: ['default'],
      expires_at,
    });
    const { id, value } = made.body;
    expect(made).toMatchObject({
      status: 201,
      body: {
        name: 'the console',
        role: 'viewer',
        sources: ['default'],
        environment: 'test',
        created_by: 'the boss',
        expires_at,
        revoked_at: null,
        value: expect.stringMatching(/^thk_test_[\w-]{43}$/),
      },
    });
    expect(await ask(relay, replicas, `Bearer ${value}`)).toMatchObject({ status: 200 });
    const dump = await relay.database.query('select *, encode(value_hash, $1) as hash from tokens', [
      'escape',
    ]);
    expect(JSON.stringify(dump)).not.toContain(value.slice(9));

    expect(await admin.post(`/tokens/${id}/revoke`)).toMatchObject({ status: 200, body: { id } });
    expect(await ask(relay, replicas, `Bearer ${value}`)).toMatchObject({ status: 401, body: INVALID });
    expect(await admin.post(`/tokens/${id}/revoke`)).toMatchObject({ status: 200, body: { id } });

    expect(await admin.post('/tokens/tok_unknown/revoke')).toMatchObject({ status: 404 });
    const { body: log } = await admin.get<{ items: object[] }>(`/operator-log?subject=${id}`);
    expect(log.items).toEqual([
      expect.objectContaining({
        action: 'token.revoke',
        actor: 'the boss',
        token_id: admin.token.id,
        role: 'admin',
      }),
      expect.objectContaining({
        action: 'token.create',
        subject: id,
        remote_address: '127.0.0.1',
        detail: { name: 'the console', role: 'viewer', sources: ['default'], expires_at },
      }),
    ]);
    expect(JSON.stringify([log, relay.log])).not.toContain(value.slice(9));
  });

  test('that has expired is refused', async () => {
    const relay = shared();
    const { token, value } = await newToken(relay.database, { expiresAt: new Date(Date.now() + 60_000) });
    expect(await ask(relay, replicas, `Bearer ${value}`)).toMatchObject({ status: 200 });

    await relay.database.query('update tokens set expires_at = now() where id = $1', [token.id]);

    expect(await ask(relay, replicas, `Bearer ${value}`)).toMatchObject({ status: 401, body: INVALID });
  });

  test('that is limited to some sources manages no tokens and reads no operator log', async () => {
    const relay = shared();
    const admin = await operators(relay, { sources: ['default'] });

    expect(await admin.get('/tokens')).toMatchObject({ status: 403, body: FORBIDDEN });
    expect(await admin.get('/operator-log')).toMatchObject({ status: 403, body: FORBIDDEN });
    expect(await admin.post('/tokens', { name: 'all', role: 'admin' })).toMatchObject({ status: 403 });
    expect(await admin.post(`/tokens/${admin.token.id}/revoke`)).toMatchObject({ status: 403 });
  });

  test('that could do nothing, a scraper’s limited to some sources, is not made', async () => {
    const relay = shared();
    const admin = await operators(relay);
    const order = { name: 'prometheus', role: 'scraper' };

    expect(await admin.post('/tokens', { ...order, sources: ['default'] })).toMatchObject({
      status: 400,
      body: { error: 'invalid_request', message: expect.stringContaining('sources') },
    });
    expect(await tokensMadeBy(relay, admin)).toEqual([]);
    expect(await admin.post('/tokens', order)).toMatchObject({ status: 201, body: { sources: null } });
  });

  test('that is limited to some sources is refused events of others before they are looked up', async () => {
    const relay = shared();
    const limited = await operators(relay, { sources: ['team-a'] });
    const jobId = newJobId();
    await deliver(relay.webhooks, completed(jobId));

    for (const id of [
      `default:${jobId}:completed`,
      'default:nothing:completed',
      'default:a:b:processing:5',
      'nowhere:nothing:failed',
    ]) {
      expect({ id, ...(await limited.get(`/events/${id}`)) }).toMatchObject({
        id,
        status: 403,
        body: FORBIDDEN,
      });
    }
    expect(await limited.get('/events/team-a:nothing:completed')).toMatchObject({ status: 404 });
    expect(await limited.get('/events/nothing')).toMatchObject({ status: 404 });
  });

  test('has its last use noted, at most once a minute', async () => {
    await using relay = await startTestService();
    const { token, value } = await newToken(relay.database);
    const lastUse = async () => {
      const [row] = await relay.database.query<{ last_used_at: Date | null }>(
        'select last_used_at from tokens where id = $1',
        [token.id],
      );
      return row?.last_used_at ?? undefined;
    };
    expect(await lastUse()).toBeUndefined();
    await ask(relay, replicas, `Bearer ${value}`);
    await expect.poll(lastUse).toBeInstanceOf(Date);
    const first = await lastUse();

    await ask(relay, replicas, `Bearer ${value}`);
    await relay.service.stop(); // all that was under way has ended

    expect(await lastUse()).toEqual(first);
  });

  test('is not created beyond the limit of 1,000', async () => {
    await using relay = await startTestService();
    const admin = await operators(relay);
    await relay.database.query(
      `insert into tokens (id, name, environment, role, value_hash, created_at, created_by, revoked_at)
       select 'tok_' || n, 'old', 'test', 'viewer', sha256(n::text::bytea), now(), 'a test',
         case when n <= 2 then now() - interval '91 days' end
       from generate_series(1, 1000) as n`,
    );
    // Two that were revoked long ago make room, for one more.
    expect(await admin.post('/tokens', { name: 'last', role: 'viewer' })).toMatchObject({ status: 201 });

    expect(await admin.post('/tokens', { name: 'one more', role: 'viewer' })).toMatchObject({
      status: 409,
      body: { error: 'too_many_tokens' },
    });
    expect((await admin.get<{ items: object[] }>('/tokens')).body.items).toHaveLength(1_000);
  });
});

describe('the rate limit', () => {
  test('is counted for each token, and shown in every answer except health', async () => {
    await using relay = await startTestService({ env: { API_REQUESTS_PER_MINUTE: '3' } });
    const { value } = await newToken(relay.database);
    const { value: other } = await newToken(relay.database);

    const answers = [];
    for (let count = 0; count < 4; count++) answers.push(await ask(relay, replicas, `Bearer ${value}`));

    expect(
      answers.map(({ status, head }) => [status, head['x-ratelimit-limit'], head['x-ratelimit-remaining']]),
    ).toEqual([
      [200, '3', '2'],
      [200, '3', '1'],
      [200, '3', '0'],
      [429, '3', '0'],
    ]);
    const last = answers.at(-1);
    expect(last?.body).toEqual({ error: 'rate_limited', message: 'rate limit exceeded' });
    expect(Number(last?.head['retry-after'])).toBeGreaterThan(0);
    const resetS = Number(last?.head['x-ratelimit-reset']);
    expect(resetS).toBeGreaterThan(Date.now() / 1_000);
    expect(resetS).toBeLessThan(Date.now() / 1_000 + 62);
    expect(await ask(relay, replicas, `Bearer ${other}`)).toMatchObject({ status: 200 });
  });

  test('applies to an address without a valid token, and does not block valid tokens from there', async () => {
    await using relay = await startTestService({ env: { API_REQUESTS_PER_MINUTE: '1' } });
    const { value } = await newToken(relay.database);
    const statuses = [];
    for (let count = 0; count < 12; count++) statuses.push((await ask(relay, replicas)).status);

    expect(statuses).toEqual([...Array<number>(10).fill(401), 429, 429]);
    // Never seen before, and from the same address.
    expect(await ask(relay, replicas, `Bearer ${value}`)).toMatchObject({ status: 200 });
    await request(relay.operators).get('/livez').expect(200);
  });

  test('and the security headers are on answers of every kind', async () => {
    const relay = shared();
    const { value } = await newToken(relay.database);
    const token = `Bearer ${value}`;

    const answers = [
      await ask(relay, replicas),
      await ask(relay, replicas, 'Bearer wrong'),
      await ask(relay, replicas, token),
      await ask(relay, '/api/v1/docs', token),
      await ask(relay, '/api/v1/nowhere', token),
      await ask(relay, '/api/v1/tokens?unknown=1', token),
      await ask(relay, '/api/v1/tokens?%zz', token),
      await ask(relay, '/metrics'),
      await ask(relay, '/nowhere'),
    ];

    expect(answers.map(({ status }) => status)).toEqual([401, 401, 200, 200, 404, 400, 400, 200, 404]);
    for (const { head } of answers) {
      expect(head).toMatchObject({
        ...RATE_HEADERS,
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'content-security-policy': expect.stringContaining("default-src 'none'"),
        'x-frame-options': 'DENY',
      });
    }
    const health = await ask(relay, '/livez');
    expect(health.head).not.toHaveProperty('x-ratelimit-limit');
    expect(health.head).toMatchObject({ 'x-content-type-options': 'nosniff' });
  });
});

describe('/metrics', () => {
  const closed = shareTestService({ env: { METRICS_OPEN: 'false' } });

  test('is readable with any token, and not without one', async () => {
    const relay = closed();

    expect(await ask(relay, '/metrics')).toMatchObject({ status: 401, body: MISSING });
    expect(await ask(relay, '/metrics', 'Bearer nonsense')).toMatchObject({ status: 401, body: INVALID });
    for (const role of ['scraper', 'viewer', 'admin'] as const) {
      const { value } = await newToken(relay.database, { role });
      const { status, text } = await ask(relay, '/metrics', `Bearer ${value}`);
      expect(status).toBe(200);
      expect(text).toContain('tallyhook_write_queue_deliveries');
    }
  });

  test('opens to no token that is limited to sources, since its numbers are of all', async () => {
    const relay = closed();

    for (const role of ['scraper', 'viewer', 'admin'] as const) {
      const { value } = await newToken(relay.database, { role, sources: ['default'] });
      expect(await ask(relay, '/metrics', `Bearer ${value}`)).toMatchObject({ status: 403, body: FORBIDDEN });
    }
  });

  test('is open to a limited token, too, where it is open to everybody', async () => {
    const relay = shared(); // has METRICS_OPEN
    const { value } = await newToken(relay.database, { sources: ['default'] });

    expect(await ask(relay, '/metrics', `Bearer ${value}`)).toMatchObject({ status: 200 });
  });

  test('accepts known tokens while Postgres is down, and the API does not', async () => {
    await using database = await createTestDatabase();
    await using proxy = await startProxy(database.url, { defaultPort: 5432 });
    await using relay = await startTestService({
      database,
      env: { DATABASE_URL: proxy.url, METRICS_OPEN: 'false' },
    });
    const { value: seen } = await newToken(database, { role: 'viewer' });
    const { value: unused } = await newToken(database, { role: 'scraper' });
    const { value: limited } = await newToken(database, { role: 'viewer', sources: ['default'] });
    for (const value of [seen, limited]) await ask(relay, '/metrics', `Bearer ${value}`);

    proxy.refuse();
    proxy.cut();
    const { value: unseen } = await newToken(database, { role: 'scraper' });

    for (const value of [seen, unused]) {
      expect(await ask(relay, '/metrics', `Bearer ${value}`)).toMatchObject({ status: 200 });
    }
    expect(await ask(relay, '/metrics', `Bearer ${limited}`)).toMatchObject({ status: 403, body: FORBIDDEN });
    const without = [
      await ask(relay, '/metrics', `Bearer ${unseen}`),
      await ask(relay, replicas, `Bearer ${seen}`),
    ];
    for (const answer of without) {
      expect(answer).toMatchObject({ status: 503, body: { error: 'unavailable' } });
      expect(answer.head).toMatchObject({ ...RATE_HEADERS, 'retry-after': expect.stringMatching(/^\d+$/) });
    }
    expect(await ask(relay, '/metrics')).toMatchObject({ status: 401 });
  });
});

test('each request has one line in the log, without its query and its token', async () => {
  await using relay = await startTestService();
  const admin = await operators(relay);

  await admin.get('/operator-log?subject=something-private');
  await ask(relay, replicas);

  const lines = () => relay.log.filter(({ msg }) => msg === 'operators request');
  await expect.poll(lines).toHaveLength(2);
  expect(lines()).toEqual([
    expect.objectContaining({
      operation: 'listOperatorLog',
      status: 200,
      ms: expect.any(Number),
      token: admin.token.id,
    }),
    expect.objectContaining({ status: 401 }),
  ]);
  const text = JSON.stringify(relay.log);
  expect(text).not.toContain('something-private');
  expect(text).not.toContain(admin.value.slice(9));
});

describe('the operator log', () => {
  test('accepts new lines and no changes', async () => {
    const relay = shared();
    const admin = await operators(relay);
    await admin.post('/tokens', { name: 'one', role: 'viewer' });

    for (const change of [
      `update operator_log set actor = 'nobody'`,
      'delete from operator_log',
      'truncate operator_log',
    ]) {
      await expect(relay.database.query(change)).rejects.toThrow('append-only');
    }
  });

  test('is read page by page, filtered, and stays in order while lines arrive', async () => {
    const relay = shared();
    const admin = await operators(relay, { name: 'one' });
    const other = await operators(relay, { name: 'two' });
    const ids: string[] = [];
    for (let count = 0; count < 5; count++) {
      const { body } = await admin.post<{ id: string }>('/tokens', { name: `t${count}`, role: 'viewer' });
      ids.unshift(body.id);
    }
    type Page = { items: { subject: string; at: string }[]; next_cursor: string | null };
    const path = '/operator-log?limit=2&action=token.create&actor=one';
    const subjects: string[] = [];
    let { body: page } = await admin.get<Page>(path);
    await other.post('/tokens', { name: 'late', role: 'viewer' });
    await admin.post('/tokens', { name: 'late', role: 'viewer' });
    for (;;) {
      subjects.push(...page.items.map(({ subject }) => subject));
      if (page.next_cursor === null) break;
      ({ body: page } = await admin.get<Page>(`${path}&cursor=${page.next_cursor}`));
    }

    expect(subjects).toEqual(ids);
    const { body: first } = await admin.get<Page>(path);
    expect(
      await admin.get(`/operator-log?limit=2&action=token.create&actor=two&cursor=${first.next_cursor}`),
    ).toMatchObject({ status: 400, body: { error: 'invalid_cursor' } });
    const { body: all } = await admin.get<Page>('/operator-log');
    const [newest] = all.items;
    const { body: before } = await admin.get<Page>(`/operator-log?to=${newest?.at}`);
    expect(before.items).toEqual(all.items.slice(1));
    const { body: since } = await admin.get<Page>(`/operator-log?from=${newest?.at}`);
    expect(since.items).toEqual([newest]);
  });
});

describe('a request that is repeated under its Idempotency-Key', () => {
  const order = { name: 'once', role: 'viewer' };

  test('acts once and gets its answer again, without the value', async () => {
    const relay = shared();
    const admin = await operators(relay);
    const key = `a key, with spaces: 1 ~`;

    const first = await admin.post('/tokens', order, { key });
    const again = await admin.post('/tokens', order, { key });

    expect(first.status).toBe(201);
    expect(first.headers.get('idempotency-replayed')).toBeNull();
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    const { value: _value, ...rest } = first.body;
    expect(again).toMatchObject({ status: 201, body: rest });
    expect(again.body).not.toHaveProperty('value');
    expect(await tokensMadeBy(relay, admin)).toHaveLength(1);
    const kept = await relay.database.query('select answer from idempotency_keys');
    expect(JSON.stringify(kept)).not.toContain('thk_');
  });

  test('at the same time, too', async () => {
    const relay = shared();
    const admin = await operators(relay);

    const answers = await Promise.all(
      [1, 2, 3, 4].map(() => admin.post('/tokens', order, { key: 'together' })),
    );

    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect(answers.filter(({ headers }) => headers.has('idempotency-replayed'))).toHaveLength(3);
    expect(await tokensMadeBy(relay, admin)).toHaveLength(1);
  });

  test('is refused as long as the first one is under way, and free once that failed', async () => {
    const relay = shared();
    const admin = await operators(relay);
    await using other = await openTransaction(relay.database);
    await other.query(
      `insert into idempotency_keys (token_id, key, request_hash, created_at) values ($1, 'slow', '', now())`,
      [admin.token.id],
    );

    expect(await admin.post('/tokens', order, { key: 'slow' })).toMatchObject({
      status: 409,
      body: { error: 'in_progress' },
    });
    expect(await tokensMadeBy(relay, admin)).toHaveLength(0);
    await other.rollback();

    expect(await admin.post('/tokens', order, { key: 'slow' })).toMatchObject({ status: 201 });
  });

  test('with another body or for another address is refused', async () => {
    const relay = shared();
    const admin = await operators(relay);
    await admin.post('/tokens', order, { key: 'k' });

    for (const again of [
      admin.post('/tokens', { ...order, role: 'admin' }, { key: 'k' }),
      admin.post(`/tokens/${admin.token.id}/revoke`, undefined, { key: 'k' }),
    ]) {
      expect(await again).toMatchObject({ status: 422, body: { error: 'idempotency_key_reused' } });
    }
  });

  test('acts again once a day has passed', async () => {
    const relay = shared();
    const admin = await operators(relay);
    await admin.post('/tokens', order, { key: 'k' });
    await relay.database.query(
      `update idempotency_keys set created_at = now() - interval '25 hours' where token_id = $1`,
      [admin.token.id],
    );

    const again = await admin.post('/tokens', { ...order, role: 'auditor' }, { key: 'k' });

    expect(again).toMatchObject({ status: 201, body: { role: 'auditor', value: expect.any(String) } });
  });

  test('needs a key of printable characters', async () => {
    const relay = shared();
    const admin = await operators(relay);

    for (const key of ['', 'x'.repeat(256), 'ä', 'a\tb']) {
      expect(await admin.post('/tokens', order, { key })).toMatchObject({
        status: 400,
        body: { error: 'invalid_request', message: expect.stringContaining('Idempotency-Key') },
      });
    }
    expect(await tokensMadeBy(relay, admin)).toHaveLength(0);
  });

  test('that failed is tried anew', async () => {
    const relay = shared();
    const admin = await operators(relay);
    const path = '/tokens/tok_later/revoke';
    expect(await admin.post(path, undefined, { key: 'k' })).toMatchObject({ status: 404 });
    await relay.database.query(
      `insert into tokens (id, name, environment, role, value_hash, created_at, created_by)
       values ('tok_later', 'later', 'test', 'viewer', 'x', now(), 'a test')`,
    );

    expect(await admin.post(path, undefined, { key: 'k' })).toMatchObject({ status: 200 });
  });
});
