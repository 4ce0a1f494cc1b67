// The OpenAPI document and what the service does are the same: every operation that it names is called here on a running
// service with some history, and every answer is held against it.

import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, test } from 'vitest';
import { newExchange } from '../../support/bus.ts';
import { type Document, openApiOf, readOpenApi } from '../../support/openapi.ts';
import { type Answer, newToken, type Operators, operators, read } from '../../support/operators.ts';
import { completed, deliver, failed, newJobId, progress } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { shareTestService } from '../../support/shared-service.ts';

const shared = shareTestService();

/** What the history below has to offer, for addresses and bodies. */
type History = {
  readonly jobId: string;
  readonly eventId: string;
  readonly otherEventId: string;
  readonly deliveryId: string;
  readonly conflictId: string;
  readonly quarantinedId: string;
  readonly unwantedId: string;
};

type Call = (caller: Operators, history: History) => Promise<Answer<unknown>>;

const get =
  (path: string | ((history: History) => string)): Call =>
  (caller, history) =>
    caller.get(typeof path === 'string' ? path : path(history));

const post =
  (path: string | ((history: History) => string), body?: object): Call =>
  (caller, history) =>
    caller.post(typeof path === 'string' ? path : path(history), body);

/** A replay that has not ended before we get to it: three events at one a second. */
async function newReplay(caller: Operators, { jobId }: History): Promise<Answer<{ id: string }>> {
  return caller.post('/replays', { filter: { job_id: jobId }, rate_per_second: 1, note: 'for a test' });
}

const changeReplay =
  (...verbs: string[]): Call =>
  async (caller, history) => {
    const { body } = await newReplay(caller, history);
    let answer: Answer<unknown> | undefined;
    for (const verb of verbs) answer = await caller.post(`/replays/${body.id}/${verb}`);
    if (answer === undefined) throw new Error('there is nothing to change');
    return answer;
  };

/** One call at least of each operation. The first one has to succeed. */
const CALLS: Readonly<Record<string, readonly [Call, ...Call[]]>> = {
  'GET /jobs': [get('/jobs'), get('/jobs?state=stuck&stuck_after=60'), get('/jobs?state=completed&limit=1')],
  'GET /jobs/{source}/{job_id}': [
    get(({ jobId }) => `/jobs/default/${jobId}`),
    get(({ jobId }) => `/jobs/default/${jobId}?limit=2`),
    get('/jobs/default/nothing'),
  ],
  'GET /story': [
    get(({ jobId }) => `/story?source=default&job_id=${jobId}`),
    get(({ jobId }) => `/story?source=default&job_id=${jobId}&limit=2`),
    get('/story?source=default&job_id=nothing'),
    get('/story?source=default'),
  ],
  'GET /deliveries': [
    get('/deliveries'),
    get('/deliveries?outcome=quarantined'),
    get('/deliveries?cursor=x'),
  ],
  'GET /deliveries/{id}': [
    get(({ deliveryId }) => `/deliveries/${deliveryId}`),
    get(`/deliveries/${crypto.randomUUID()}`),
  ],
  'GET /deliveries/{id}/body': [
    get(({ deliveryId }) => `/deliveries/${deliveryId}/body`),
    get(`/deliveries/${crypto.randomUUID()}/body`),
  ],
  'GET /deliveries/{id}/difference': [
    get(({ conflictId }) => `/deliveries/${conflictId}/difference`),
    get(({ deliveryId }) => `/deliveries/${deliveryId}/difference`),
  ],
  'GET /events': [get('/events'), get('/events?kind=progress')],
  'GET /events/{id}': [get(({ eventId }) => `/events/${eventId}`), get('/events/default:none:completed')],
  'GET /events/{id}/cloudevent': [
    get(({ eventId }) => `/events/${eventId}/cloudevent`),
    get('/events/default:none:completed/cloudevent'),
  ],
  'GET /publications': [get('/publications'), get('/publications?result=returned&limit=1')],
  'GET /quarantine': [get('/quarantine'), get('/quarantine?reason=unknown%20status')],
  'GET /quarantine/groups': [
    get('/quarantine/groups'),
    get('/quarantine/groups?by=source'),
    get('/quarantine/groups?by=queue'),
  ],
  'GET /outbox': [get('/outbox'), get('/outbox?state=returned')],
  'GET /incidents': [get('/incidents'), get('/incidents?state=open&severity=critical')],
  'GET /conditions': [get('/conditions')],
  'POST /alerts/test': [post('/alerts/test')],
  'GET /outbox/groups': [get('/outbox/groups'), get('/outbox/groups?by=queue&copies=true')],
  'GET /stats': [
    get(
      () =>
        `/stats?from=${new Date(Date.now() - 600_000).toISOString()}&to=${new Date(Date.now() + 60_000).toISOString()}&step=60`,
    ),
  ],
  'GET /sources': [get('/sources')],
  'GET /search': [
    get(({ jobId }) => `/search?q=${jobId}`),
    get(({ deliveryId }) => `/search?q=${deliveryId}`),
    get(({ eventId }) => `/search?q=${eventId}`),
    get('/search?q=default'),
    get('/search?q=job'),
    get('/search'),
  ],
  'GET /replicas': [get('/replicas')],
  'GET /destinations': [get('/destinations')],
  'GET /sizes': [get('/sizes')],
  'GET /export': [get('/export?list=deliveries&format=ndjson'), get('/export?list=jobs&format=csv')],
  'GET /live': [
    async (caller) => {
      const gone = new AbortController();
      const answer = await caller.fetch('/live', { signal: gone.signal });
      gone.abort();
      return { status: answer.status, headers: answer.headers, body: undefined, text: '' };
    },
  ],
  'GET /replays': [get('/replays')],
  'POST /replays': [
    newReplay,
    post('/replays', { filter: { source: 'default' }, dry_run: true }),
    post('/replays', { event_ids: ['default:none:completed'] }),
    post('/replays', {}),
  ],
  'GET /replays/{id}': [
    async (caller, history) => {
      const { body } = await newReplay(caller, history);
      return caller.get(`/replays/${body.id}`);
    },
  ],
  'POST /replays/{id}/pause': [changeReplay('pause'), changeReplay('cancel', 'pause')],
  'POST /replays/{id}/resume': [changeReplay('pause', 'resume')],
  'POST /replays/{id}/cancel': [changeReplay('cancel'), changeReplay('cancel', 'cancel')],
  'POST /quarantine/release': [
    post('/quarantine/release', { filter: { source: 'default' } }),
    (caller, { quarantinedId, deliveryId }) =>
      caller.post('/quarantine/release', { ids: [quarantinedId, deliveryId, crypto.randomUUID()] }),
    post('/quarantine/release', { filter: {}, dry_run: true }),
  ],
  'POST /quarantine/discard': [
    (caller, { unwantedId }) =>
      caller.post('/quarantine/discard', { ids: [unwantedId, crypto.randomUUID()], note: 'for a test' }),
    post('/quarantine/discard', { filter: { source: 'default' }, dry_run: true }),
    post('/quarantine/discard', { filter: { source: 'nobody' }, note: 'for a test' }),
    post('/quarantine/discard', { filter: {} }),
  ],
  'POST /outbox/park': [
    (caller, { eventId }) => caller.post('/outbox/park', { ids: [eventId, 'default:none:completed'] }),
    post('/outbox/park', { filter: { state: 'pending', source: 'nobody' } }),
  ],
  'POST /outbox/retry': [
    post('/outbox/retry', { filter: { state: 'returned' } }),
    post('/outbox/retry', { filter: { state: 'returned' }, dry_run: true }),
    (caller, { eventId }) => caller.post('/outbox/retry', { ids: [eventId, '1', 'nothing'] }),
  ],
  'POST /outbox/discard': [
    post('/outbox/discard', { filter: { state: 'parked' }, dry_run: true }),
    post('/outbox/discard', { filter: { state: 'parked' } }),
    (caller, { otherEventId }) => caller.post('/outbox/discard', { ids: [otherEventId, '1', 'nothing'] }),
    post('/outbox/discard', {}),
  ],
  'GET /tokens': [get('/tokens')],
  'POST /tokens': [
    post('/tokens', { name: 'another', role: 'viewer' }),
    post('/tokens', { name: '', role: 'king' }),
  ],
  'POST /tokens/{id}/revoke': [
    async (caller) => {
      const { body } = await caller.post('/tokens', { name: 'in vain', role: 'viewer' });
      return caller.post(`/tokens/${String(body['id'])}/revoke`);
    },
  ],
  'GET /sessions': [get('/sessions')],
  'POST /sessions/{id}/end': [
    async (caller) => {
      await caller.fetch('/../../console/sign-in', {
        method: 'POST',
        redirect: 'manual',
        headers: { 'Sec-Fetch-Site': 'same-origin' },
        body: new URLSearchParams({ token: caller.value }),
      });
      const { body } = await caller.get<{ items: { id: string }[] }>('/sessions');
      return caller.post(`/sessions/${body.items[0]?.id ?? ''}/end`);
    },
    post('/sessions/ses_none/end'),
  ],
  'POST /sign-in-codes': [post('/sign-in-codes')],
  'GET /operator-log': [get('/operator-log'), get('/operator-log?limit=1&action=token.create')],
};

/** Something of everything: all outcomes, events of each kind, and entries that came back for want of a queue. */
async function makeHistory(relay: TestService): Promise<History> {
  const [jobId, otherId, strangeId] = [newJobId(), newJobId(), newJobId()];
  await deliver(relay.webhooks, progress(jobId, 20));
  await deliver(relay.webhooks, progress(jobId, 60, { unheard_of: true }));
  await deliver(relay.webhooks, completed(jobId));
  await deliver(relay.webhooks, completed(jobId));
  await deliver(relay.webhooks, completed(jobId, { cost_cents: 1 }));
  await deliver(relay.webhooks, failed(otherId));
  await deliver(relay.webhooks, { job_id: strangeId, status: 'exploded' });
  await deliver(relay.webhooks, { job_id: newJobId(), status: 'exploded' });
  await deliver(relay.webhooks, '[]');
  await deliver(relay.webhooks, '{}', { secret: 'some other secret of enough bytes' });
  await expect
    .poll(() => relay.database.query(`select 1 from outbox_held where state = 'returned'`))
    .toHaveLength(4);
  const [accepted] = await relay.database.query<{ id: string }>(
    `select id from deliveries where job_id = $1 and outcome = 'accepted' and status = 'completed'`,
    [jobId],
  );
  const [conflict] = await relay.database.query<{ id: string }>(
    `select id from deliveries where outcome = 'conflict'`,
  );
  const [quarantined, unwanted] = await relay.database.query<{ id: string }>(
    `select id from deliveries where outcome = 'quarantined'`,
  );
  return {
    jobId,
    eventId: `default:${jobId}:completed`,
    otherEventId: `default:${otherId}:failed`,
    deliveryId: accepted?.id ?? '',
    conflictId: conflict?.id ?? '',
    quarantinedId: quarantined?.id ?? '',
    unwantedId: unwanted?.id ?? '',
  };
}

describe('the OpenAPI document', () => {
  test('is valid, and names every route that is mounted', async () => {
    const relay = shared();
    const admin = await operators(relay);
    const { document, operations } = await readOpenApi(admin);

    expect(document.openapi).toBe('3.1.0');
    expect(await new Validator().validate(structuredClone(document))).toMatchObject({ valid: true });
    for (const path of Object.keys(document.paths)) {
      const answer = await admin.get(path.replaceAll(/\{\w+\}/g, 'x'), { method: 'PUT' });
      const methods = operations.filter((operation) => operation.endsWith(` ${path}`));
      expect({
        path,
        status: answer.status,
        allow: answer.headers.get('allow')?.split(', ').toSorted(),
      }).toEqual({
        path,
        status: 405,
        allow: methods
          .flatMap((operation) => (operation.startsWith('GET ') ? ['GET', 'HEAD'] : ['POST']))
          .toSorted(),
      });
    }
  });

  test('has a call in this test for each operation', async () => {
    const relay = shared();
    const { operations } = await readOpenApi(await operators(relay));

    expect(operations.toSorted()).toEqual(Object.keys(CALLS).toSorted());
  });

  test('declares the answers of each operation', async () => {
    await using relay = await startTestService({ exchange: newExchange() });
    const admin = await operators(relay);
    const openApi = await readOpenApi(admin);
    const history = await makeHistory(relay);
    const faults: string[] = [];

    for (const [operation, calls] of Object.entries(CALLS)) {
      for (const [index, call] of calls.entries()) {
        const answer = await call(admin, history);
        faults.push(...openApi.faultsOf(operation, answer));
        if (index === 0 && answer.status >= 300) {
          faults.push(`${operation} answered ${answer.status} ${answer.text}`);
        }
      }
    }

    expect(faults).toEqual([]);
  });

  test('names the shape of every answer and every body, for those who make clients of it', async () => {
    const relay = shared();
    const { document } = await readOpenApi(await operators(relay));
    const unnamed: string[] = [];
    type Shaped = { content?: Record<string, { schema?: { $ref?: string } }> };

    for (const [path, methods] of Object.entries(document.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        const { requestBody } = operation as { requestBody?: Shaped };
        const shaped: Shaped[] = [
          ...Object.values(operation.responses),
          ...(requestBody ? [requestBody] : []),
        ];
        const isUnnamed = shaped.some(({ content }) => {
          const schema = content?.['application/json']?.schema;
          return schema !== undefined && schema.$ref === undefined;
        });
        if (isUnnamed) unnamed.push(`${method.toUpperCase()} ${path}`);
      }
    }

    expect(unnamed).toEqual([]);
  });

  test('declares how each operation refuses a missing or weak token', async () => {
    const relay = shared();
    const scraper = await newToken(relay.database, { role: 'scraper' });
    const openApi = await readOpenApi(await operators(relay));
    const faults: string[] = [];

    for (const operation of openApi.operations) {
      const [method = '', path = ''] = operation.split(' ');
      const url = `${relay.operators}/api/v1${path.replaceAll(/\{\w+\}/g, 'x')}`;
      const headers = { authorization: `Bearer ${scraper.value}` };
      const without = await read(await fetch(url, { method }));
      const scraping = await read(await fetch(url, { method, headers }));
      expect({ operation, statuses: [without.status, scraping.status] }).toEqual({
        operation,
        statuses: [401, 403],
      });
      faults.push(...openApi.faultsOf(operation, without), ...openApi.faultsOf(operation, scraping));
    }

    expect(faults).toEqual([]);
  });

  test('and an answer that breaks it are told apart', async () => {
    const document = {
      openapi: '3.1.0',
      paths: {
        '/x': {
          get: {
            operationId: 'x',
            responses: {
              200: { content: { 'application/json': { schema: { $ref: 'openapi#/components/schemas/X' } } } },
            },
          },
        },
      },
      components: { responses: {}, schemas: { X: { type: 'object', required: ['a'] } } },
    } as Document;
    const headers = new Headers({ 'content-type': 'application/json; charset=utf-8' });
    const { faultsOf } = openApiOf(document);

    expect(faultsOf('GET /x', { status: 200, headers, body: { a: 1 } })).toEqual([]);
    expect(faultsOf('GET /x', { status: 200, headers, body: {} })).toHaveLength(1);
    expect(faultsOf('GET /x', { status: 404, headers, body: {} })).toHaveLength(1);
    expect(faultsOf('GET /x', { status: 200, headers: new Headers(), body: { a: 1 } })).toHaveLength(1);
  });
});

describe('the documentation page', () => {
  test('opens without a token, lists every operation, and loads its own style and script alone', async () => {
    await using relay = await startTestService();
    const viewer = await operators(relay, { role: 'viewer' });
    const { document } = await readOpenApi(viewer);
    const open = async (path: string) => read(await fetch(`${relay.operators}/api/v1${path}`));

    const page = await open('/docs');

    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    for (const methods of Object.values(document.paths)) {
      for (const { operationId } of Object.values(methods))
        expect(page.text).toContain(`id="${operationId}"`);
    }
    const own = '<link rel="stylesheet" href="docs.css"><script type="module" src="docs.js"></script>';
    expect(page.text).toContain(own);
    expect(page.text.replace(own, '')).not.toMatch(
      /<script|<style|javascript:|src=|https?:|url\(|\s(?:on\w+|style)=/i,
    );
    expect(page.headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; " +
        "form-action 'none'; frame-ancestors 'none'",
    );
    const [style, script] = [await open('/docs.css'), await open('/docs.js')];
    expect(style.headers.get('content-type')).toBe('text/css; charset=utf-8');
    expect(script.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect(style.text + script.text).not.toMatch(/https?:|url\(|@import|\beval\b|innerHTML/);
    expect((await open('/openapi.json')).body).toEqual(document);
  });

  test('counts against the rate limit of its reader’s address', async () => {
    await using relay = await startTestService({ env: { API_REQUESTS_PER_MINUTE: '1' } });
    const statuses: number[] = [];
    for (let count = 0; count < 11; count++) {
      statuses.push((await fetch(`${relay.operators}/api/v1/docs`)).status);
    }
    expect(statuses).toEqual([...Array<number>(10).fill(200), 429]);
  });

  test('takes reads alone, and says so where a token is wrong or in the address', async () => {
    const relay = shared();
    const { value } = await newToken(relay.database, { role: 'scraper' });
    const ask = async (path: string, init?: RequestInit) =>
      (await fetch(`${relay.operators}/api/v1${path}`, init)).status;
    for (const path of ['/docs', '/docs.css', '/docs.js', '/openapi.json']) {
      expect(await ask(path, { headers: { Authorization: `Bearer ${value}` } })).toBe(200);
      expect(await ask(path, { method: 'HEAD' })).toBe(200);
      expect(await ask(path, { method: 'POST' })).toBe(405);
      expect(await ask(path, { headers: { Authorization: `Bearer ${value}x` } })).toBe(401);
      expect(await ask(`${path}?token=${value}`)).toBe(400);
      expect(await ask(path, { headers: { Origin: 'http://elsewhere.test' } })).toBe(403);
      expect(await ask(`${path}/`)).toBe(401);
    }
  });
});
