// What nobody should send to the operators' API gets a clear 4xx and never a 500: held against every operation that the
// API's own document names, so that new ones are held to it, too.

import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { readOpenApi } from '../../support/openapi.ts';
import { type Operators, operators, read } from '../../support/operators.ts';
import { openRaw } from '../../support/raw-http.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { shareTestService } from '../../support/shared-service.ts';

const shared = shareTestService();

type Operation = { readonly method: string; readonly path: string; readonly parameters: readonly string[] };

const UUID = '0190a5f0-0000-7000-8000-000000000000';
const SQL = `' or 1=1; drop table tokens; --`;

/** What clients send that are broken, or wish us ill, percent-encoded: for each parameter, since each has its own check. */
const HOSTILE: Readonly<Record<string, string>> = {
  'SQL metacharacters': encodeURIComponent(SQL),
  'wildcards and quotes': encodeURIComponent(`%_\\"'$1::text{}[]`),
  'a number beyond 64 bits': '99999999999999999999',
  nothing: '',
  'a time that does not exist': '2026-02-31T25:61:00Z',
  'a long text': 'x'.repeat(4_000),
};

/** What is refused before it is known what it is for: once for each operation. */
const MANGLED: Readonly<Record<string, string>> = {
  'a NUL': '%00x',
  'an unpaired surrogate': '%ed%a0%80',
  'broken percent-encoding': '%zz',
  'a prototype': '__proto__',
  'a huge number': '1e9',
  'a negative number': '-1',
};

async function operationsOf(caller: Operators): Promise<Operation[]> {
  const { document } = await readOpenApi(caller);
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const { parameters = [] } = operation as { parameters?: { in?: string; name?: string }[] };
      return {
        method: method.toUpperCase(),
        path,
        parameters: parameters.flatMap(({ in: place, name }) => (place === 'query' && name ? [name] : [])),
      };
    }),
  );
}

/** With something in the place of each parameter of the path that is well-formed and leads nowhere. */
const toPath = (path: string, value = UUID) => path.replaceAll(/\{\w+\}/g, value);

/** The answer; of one that has no end, the head. */
async function ask(caller: Operators, path: string, init: RequestInit = {}) {
  const gone = new AbortController();
  const response = await caller.fetch(path, { ...init, signal: gone.signal });
  const { status, headers } = response;
  const isEndless = headers.get('content-type')?.startsWith('text/event-stream') === true;
  if (!isEndless) return { status, body: (await read(response)).body };
  gone.abort();
  return { status, body: undefined };
}

/** Times that are well-formed, and no times of ours: they leave the years that we know, or Postgres', or both. */
const BEYOND = [
  '1970-01-01T00:00:00+00:01',
  '1969-12-31T23:59:59Z',
  '0000-01-01T00:00:00Z',
  '9999-12-31T23:59:59-12:00',
  '9999-12-31T23:59:59.999999-00:01',
];

const ERROR = { error: expect.stringMatching(/^[a-z_]+$/), message: expect.stringMatching(/\w/) };

/** A session that Postgres opens too late is no answer to a request: a slow machine, which the log has to tell. */
function expectNoSurprise(relay: TestService): void {
  const surprises = relay.log.filter(
    ({ level, msg, code }) => (Number(level) >= 50 && code !== 'starved') || msg === 'unexpected error',
  );
  expect(surprises.map((line) => JSON.stringify(line))).toEqual([]);
}

describe('every operation', () => {
  test('refuses unknown and repeated parameters', async () => {
    const relay = shared();
    const admin = await operators(relay);

    for (const { method, path, parameters } of await operationsOf(admin)) {
      for (const query of ['nonsense=1', '__proto__=1', ...parameters.map((name) => `${name}=1&${name}=1`)]) {
        const answer = await ask(admin, `${toPath(path)}?${query}`, { method });
        expect({ method, path, query, ...answer }).toEqual({
          method,
          path,
          query,
          status: 400,
          body: { error: 'invalid_request', message: expect.stringContaining(query.split('=')[0] ?? '') },
        });
      }
    }
    expectNoSurprise(relay);
  });

  test('answers any parameter value without an internal error', async () => {
    const relay = shared();
    const admin = await operators(relay);
    await deliver(relay.webhooks, completed(newJobId()));
    const { length: tokens } = await relay.database.query('select 1 from tokens');
    const worse: object[] = [];

    async function check(method: string, path: string): Promise<void> {
      const { status, body } = await ask(admin, path, { method });
      const { error } = (body ?? {}) as { error?: unknown };
      const isClear = status === 200 || (status >= 400 && status < 500 && error !== undefined);
      if (!isClear) worse.push({ method, path, status, body });
    }
    for (const { method, path, parameters } of await operationsOf(admin)) {
      const places = [
        ...(path.includes('{') ? [(value: string) => toPath(path, value)] : []),
        ...parameters.map((name) => (value: string) => `${toPath(path)}?${name}=${value}`),
      ];
      for (const value of Object.values(HOSTILE)) {
        await Promise.all(places.map((place) => check(method, place(value))));
      }
      const [place = (value: string) => `${path}?x=${value}`] = places;
      await Promise.all(Object.values(MANGLED).map((value) => check(method, place(value))));
    }

    expect(worse).toEqual([]);
    expect(await relay.database.query('select 1 from tokens')).toHaveLength(tokens);
    expectNoSurprise(relay);
  });

  test('that takes a page size or a cursor refuses what is none', async () => {
    const relay = shared();
    const admin = await operators(relay);

    for (const { method, path, parameters } of await operationsOf(admin)) {
      for (const name of ['limit', 'cursor'].filter((parameter) => parameters.includes(parameter))) {
        const values =
          name === 'limit' ? ['1e9', '0', '-1', '1.5', '1000000000', 'ten', ''] : ['garbage', 'W10'];
        for (const value of values) {
          const answer = await ask(admin, `${toPath(path)}?${name}=${value}`, { method });
          expect({ path, name, value, ...answer }).toMatchObject({
            path,
            name,
            value,
            status: 400,
            body: ERROR,
          });
        }
      }
    }
  });

  test('that is an action refuses bodies that are none', async () => {
    const relay = shared();
    const admin = await operators(relay);
    const json = { 'content-type': 'application/json' };
    const deep = '['.repeat(30_000) + ']'.repeat(30_000);
    const bodies: [
      name: string,
      body: string | Buffer,
      headers: Record<string, string>,
      statuses: number[],
    ][] = [
      ['broken JSON', '{"a":', json, [400]],
      ['a list', '[]', json, [400]],
      ['a number', '1', json, [400]],
      ['null', 'null', json, [400]],
      ['no UTF-8', Buffer.from('{"note":"\xff"}', 'latin1'), json, [400]],
      ['a NUL', '{"note":"\\u0000"}', json, [400]],
      ['an unpaired surrogate', '{"note":"\\ud800"}', json, [400]],
      ['an unknown field', '{"nonsense":1}', json, [400]],
      ['a prototype', '{"__proto__":{"filter":{}}}', json, [400]],
      ['depth', `{"filter":${deep}}`, json, [400]],
      ['too much', `{"note":"${'x'.repeat(65 * 1024)}"}`, json, [413]],
      ['a form', 'note=1', { 'content-type': 'application/x-www-form-urlencoded' }, [415]],
      ['no type', Buffer.from('{}'), {}, [415]],
      ['another charset', '{}', { 'content-type': 'application/json; charset=utf-16' }, [415]],
      ['gzip', gzipSync('{}'), { ...json, 'content-encoding': 'gzip' }, [415]],
    ];

    for (const { path } of (await operationsOf(admin)).filter(({ method }) => method === 'POST')) {
      for (const [name, body, headers, statuses] of bodies) {
        const sent = typeof body === 'string' ? body : new Uint8Array(body);
        const answer = await ask(admin, toPath(path), { method: 'POST', body: sent, headers });
        expect(answer, `${path}: ${name}`).toEqual({ status: expect.toBeOneOf(statuses), body: ERROR });
      }
    }
    expectNoSurprise(relay);
  });

  test('that takes text in its body says so of what is none', async () => {
    const relay = shared();
    const admin = await operators(relay);

    for (const value of [null, ['a'], 1, true, {}]) {
      for (const [path, body, name] of [
        ['/replays', { filter: { source: value } }, 'filter.source'],
        ['/replays', { event_ids: [value] }, 'event_ids.0'],
        ['/replays', { filter: { source: 'a' }, note: value }, 'note'],
        ['/quarantine/release', { filter: { job_id: value } }, 'filter.job_id'],
        ['/outbox/retry', { filter: { state: 'parked', source: value } }, 'filter.source'],
      ] as const) {
        expect(await admin.post(path, body)).toMatchObject({
          status: 400,
          body: { error: 'invalid_request', message: `${name}: must be text` },
        });
      }
    }
  });

  test('says in plain words, and once, what is missing or of the wrong form', async () => {
    const relay = shared();
    const admin = await operators(relay);
    const uuid = 'id: must be a UUID';
    for (const [answer, message] of [
      [admin.get('/deliveries/1'), uuid],
      [admin.post('/quarantine/release', { ids: ['1'] }), 'ids.0: must be a UUID'],
      [
        admin.post('/quarantine/release', { note: 'x' }),
        'unknown parameter: note; exactly one of ids and filter must be given',
      ],
      [admin.post('/quarantine/release', { filter: 'x' }), 'filter: must be a JSON object'],
      [admin.post('/replays', { event_ids: 'x' }), 'event_ids: must be a JSON array'],
      [
        admin.post('/replays', { event_ids: ['default:a:failed'], dry_run: 1 }),
        'dry_run: must be true or false',
      ],
      [admin.get('/stats?step=30'), 'step: must be a whole number from 60 to 31622400'],
      [admin.get('/jobs?stuck_after=60'), 'stuck_after: only together with state=stuck'],
      [
        admin.get('/jobs?state=done&nothing=1'),
        'state: must be one of processing, completed, failed, stuck; unknown parameter: nothing',
      ],
      [
        admin.get('/export?list=jobs&format=csv&state=done'),
        'state: must be one of processing, completed, failed, stuck',
      ],
      [
        admin.post('/replays', { event_ids: ['default:a:failed'], rate_per_second: 1_001 }),
        'rate_per_second: must be at most 1,000',
      ],
      [
        admin.post('/replays', { event_ids: ['default:a:failed'], rate_per_second: 0 }),
        'rate_per_second: must be at least 1',
      ],
      [admin.post('/replays', { event_ids: [] }), 'event_ids: must not be empty'],
    ] as const) {
      expect(await answer).toMatchObject({ status: 400, body: { message } });
    }
  });

  test('that takes a time refuses one beyond our years, once, by the name of its parameter', async () => {
    const relay = shared();
    const admin = await operators(relay);
    const timed = (await operationsOf(admin)).filter(({ parameters }) => parameters.includes('from'));
    expect(timed.map(({ path }) => path)).toEqual(
      expect.arrayContaining(['/deliveries', '/events', '/jobs', '/operator-log', '/quarantine', '/stats']),
    );

    for (const time of [...BEYOND, 'x', `2026-01-15T10:30:00.${'0'.repeat(40)}Z`]) {
      for (const { path } of timed) {
        for (const name of ['from', 'to']) {
          const list = path === '/export' ? '&list=events' : '';
          const answer = await ask(admin, `${path}?${name}=${encodeURIComponent(time)}${list}`);
          const message = expect.stringMatching(new RegExp(`^${name}: [^;]+$`));
          expect({ path, name, time, ...answer }).toMatchObject({
            status: 400,
            body: { error: 'invalid_request', message },
          });
        }
      }
      for (const [path, body, name] of [
        ['/replays', { filter: { from: time } }, 'filter.from'],
        ['/quarantine/release', { filter: { to: time } }, 'filter.to'],
        ['/tokens', { name: 'x', role: 'viewer', expires_at: time }, 'expires_at'],
      ] as const) {
        expect(await admin.post(path, body)).toMatchObject({
          status: 400,
          body: { error: 'invalid_request', message: expect.stringMatching(new RegExp(`^${name}: [^;]+$`)) },
        });
      }
    }
    expectNoSurprise(relay);
  });

  test('that takes a time takes it with any offset, to the microsecond', async () => {
    await using relay = await startTestService();
    const admin = await operators(relay);
    await deliver(relay.webhooks, completed(newJobId()));
    // Of this minute: there is a partition for it, and a dry run counts what was recorded until now.
    const minute = new Date().toISOString().slice(0, 16);
    const at = `${minute}:00.001123Z`;
    await relay.database.query('update deliveries set received_at = $1', [at]);
    await relay.database.query('update events set recorded_at = $1', [at]);
    // Each is `at`, or a microsecond after it: Postgres itself takes no offset beyond 15:59.
    const offsets = [
      ['+23:59', (23 * 60 + 59) * 60_000],
      ['-23:59', -(23 * 60 + 59) * 60_000],
    ] as const;
    const told = (fraction: string) =>
      offsets.map(([offset, ms]) => {
        const clock = new Date(Date.parse(`${minute}Z`) + ms).toISOString().slice(0, 19);
        return `${clock}.${fraction}${offset}`;
      });
    const same = told('001123');
    const later = told('001124');

    for (const path of ['/deliveries?', '/events?', '/export?list=deliveries&', '/export?list=events&']) {
      for (const [name, times, shows] of [
        ['from', same, true],
        ['from', later, false],
        ['to', same, false],
        ['to', later, true],
      ] as const) {
        for (const time of times) {
          const answer = await admin.get(`${path}${name}=${encodeURIComponent(time)}`);
          expect(answer.status).toBe(200);
          expect({ path, name, time, shows: answer.text.includes(at) }).toEqual({ path, name, time, shows });
        }
      }
    }
    for (const [from, matched] of [
      [same[0], 1],
      [later[0], 0],
    ]) {
      expect(await admin.post('/replays', { filter: { from }, dry_run: true })).toMatchObject({
        status: 200,
        body: { matched },
      });
    }
    expect(await admin.post('/quarantine/release', { filter: { from: same[0] } })).toMatchObject({
      status: 200,
    });
    const { body } = await admin.get<{ to: string }>(`/stats?to=${encodeURIComponent(same[0] ?? '')}`);
    expect(body.to).toBe(new Date(Date.parse(`${minute}Z`) + 60_000).toISOString());
    const expiring = await admin.post('/tokens', {
      name: 'x',
      role: 'viewer',
      expires_at: '9999-12-31T23:59:59.5+23:59',
    });
    expect(expiring).toMatchObject({ status: 201, body: { expires_at: '9999-12-31T00:00:59.500Z' } });
    expectNoSurprise(relay);
  });

  test('refuses other methods, and says which it takes', async () => {
    const relay = shared();
    const admin = await operators(relay);
    const operations = await operationsOf(admin);

    for (const path of new Set(operations.map((operation) => operation.path))) {
      const taken = operations
        .filter((operation) => operation.path === path)
        .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
      for (const method of [
        'PUT',
        'DELETE',
        'OPTIONS',
        'PROPFIND',
        ...['GET', 'POST'].filter((one) => !taken.includes(one)),
        ...(taken.includes('GET') ? [] : ['HEAD']),
      ]) {
        const response = await admin.fetch(toPath(path), { method });
        await response.arrayBuffer();
        expect({ path, method, status: response.status, allow: response.headers.get('allow') }).toEqual({
          path,
          method,
          status: 405,
          allow: expect.stringMatching(/^[A-Z]+(?:, [A-Z]+)*$/),
        });
        expect(response.headers.get('allow')?.split(', ').toSorted()).toEqual(taken.toSorted());
      }
    }
  });

  test('answers HEAD as GET, without a body and a line in the operator log', async () => {
    const relay = shared();
    const admin = await operators(relay);
    const job = newJobId();
    await deliver(relay.webhooks, completed(job));
    const [{ id } = {}] = await relay.database.query<{ id: string }>(
      'select id from deliveries where job_id = $1',
      [job],
    );
    const lines = () => relay.database.query('select from operator_log where actor = $1', [admin.token.name]);

    for (const path of [
      `/deliveries/${id}/body`,
      `/events/default:${job}:completed/cloudevent`,
      '/jobs',
      '/live',
      '/export?list=jobs&format=csv',
      '/deliveries/x',
      '/jobs?nonsense=1',
    ]) {
      const gone = new AbortController();
      const get = await admin.fetch(path, { signal: gone.signal });
      gone.abort();
      const before = await lines();
      const head = await admin.fetch(path, { method: 'HEAD' });
      expect({ path, status: head.status, type: head.headers.get('content-type') }).toEqual({
        path,
        status: get.status,
        type: get.headers.get('content-type'),
      });
      expect(await head.text()).toBe('');
      expect(await lines()).toHaveLength(before.length);
    }
  });

  test('refuses a body that has a member twice', async () => {
    const relay = shared();
    const admin = await operators(relay);
    for (const body of [
      '{"name":"a","role":"viewer","name":"b"}',
      '{"name":"a","role":"viewer","n\\u0061me":"b"}',
    ]) {
      const headers = { 'Content-Type': 'application/json' };
      const answer = await read(await admin.fetch('/tokens', { method: 'POST', headers, body }));
      expect(answer).toMatchObject({
        status: 400,
        body: { error: 'invalid_request', message: 'the body has a member twice' },
      });
    }
  });

  test('refuses pages of other origins', async () => {
    const relay = shared();
    const admin = await operators(relay);
    const own = new URL(relay.operators).host;

    for (const { method, path } of await operationsOf(admin)) {
      for (const headers of [
        { origin: 'https://elsewhere.example' },
        { origin: 'null' },
        { origin: `http://${own}.elsewhere.example` },
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site' },
      ]) {
        expect(await ask(admin, toPath(path), { method, headers })).toMatchObject({
          status: 403,
          body: { error: 'cross_origin' },
        });
      }
    }
    expect(await ask(admin, '/tokens', { headers: { origin: `http://${own}` } })).toMatchObject({
      status: 200,
    });
  });

  test('refuses a token in its address, whatever it is called, and no log keeps it', async () => {
    await using relay = await startTestService();
    const admin = await operators(relay);
    const secret = admin.value.slice(9);
    const queries = [
      `token=${admin.value}`,
      `access_token=${secret}`,
      `ACCESS%5FTOKEN=${secret}`,
      `job_id=${admin.value}`,
      `job_id=${admin.value.replaceAll('_', '%5F')}`,
      `${admin.value}=1`,
    ];

    for (const { method, path } of await operationsOf(admin)) {
      for (const query of queries) {
        const answer = await ask(admin, `${toPath(path)}?${query}`, { method });
        expect(answer).toMatchObject({ status: 400, body: { error: 'token_in_address' } });
        expect(JSON.stringify(answer)).not.toContain(secret);
      }
    }
    const inPath = await ask(admin, `/deliveries/${admin.value}`);
    expect(inPath).toMatchObject({ status: 400, body: { error: 'token_in_address' } });
    // Nor does it open anything there.
    const without = await fetch(`${relay.operators}/api/v1/tokens?access_token=${admin.value}`);
    expect(without.status).toBe(400);
    await relay.service.stop();
    expect(JSON.stringify(relay.log)).not.toContain(secret);
  });
});

describe('what is hardly HTTP', () => {
  test('gets an answer in our shape, with the headers of every other', async () => {
    const relay = shared();
    const huge = 'x'.repeat(20_000);
    const requests = {
      431: `GET /api/v1/tokens?job_id=${huge} HTTP/1.1\r\nHost: x\r\n\r\n`,
      400: 'GET /api/v1/tokens HTTP/1.1\r\n\r\n',
      417: 'GET /api/v1/tokens HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\nConnection: close\r\n\r\n',
    };

    for (const [status, bytes] of Object.entries(requests)) {
      using connection = await openRaw(relay.service.operatorPort);
      connection.write(bytes);
      const [answer] = await connection.replies();
      expect(answer).toMatchObject({
        status: Number(status),
        headers: { 'x-ratelimit-limit': expect.stringMatching(/^\d+$/), 'x-content-type-options': 'nosniff' },
        body: ERROR,
      });
    }
  });
});
