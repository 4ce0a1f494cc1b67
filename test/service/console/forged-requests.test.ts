// What keeps other sites' pages out of the console: where a request comes from, and the headers on every answer.

import { expect, test } from 'vitest';
import { askConsole, COOKIE_NAME, visitConsole } from '../../support/console.ts';
import { startTestService } from '../../support/service.ts';
import { shareTestService } from '../../support/shared-service.ts';

const shared = shareTestService();

const POLICY = [
  `default-src 'none'`,
  `script-src 'self'`,
  `style-src 'self'`,
  `img-src 'self'`,
  `connect-src 'self'`,
  `form-action 'self'`,
  `frame-ancestors 'none'`,
  `base-uri 'none'`,
].join(';');

test('the API, metrics and export ignore the cookie', async () => {
  await using relay = await startTestService({ env: { METRICS_OPEN: 'false' } });
  const { session } = await visitConsole(relay);
  const statuses = await Promise.all(
    ['/metrics', '/api/v1/jobs', '/api/v1/export/deliveries?from=24h', '/api/v1/stats'].map(
      async (path) =>
        (await askConsole(relay, path, { headers: { cookie: `${COOKIE_NAME}=${session}` } })).status,
    ),
  );
  expect(statuses).toEqual([401, 401, 401, 401]);
});

test('the console ignores a token in a header', async () => {
  const relay = shared();
  const { value } = await visitConsole(relay);
  const answer = await askConsole(relay, '/console/jobs', { headers: { authorization: `Bearer ${value}` } });
  expect(answer.status).toBe(303);
});

test('a form of another site, or from nowhere, does nothing', async () => {
  const relay = shared();
  const visit = await visitConsole(relay);
  const { operators: own } = relay;
  const { port } = new URL(own);
  const foreign: [name: string, headers: Record<string, string | undefined>][] = [
    ['cross-site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
    ['same-site, such as the sandbox', { 'sec-fetch-site': 'same-site', origin: own }],
    ['none, as no form has it', { 'sec-fetch-site': 'none' }],
    ['cross-site that claims our origin', { 'sec-fetch-site': 'cross-site', origin: own }],
    ['a foreign Origin', { 'sec-fetch-site': undefined, origin: 'https://evil.example' }],
    ['another port', { 'sec-fetch-site': undefined, origin: `http://127.0.0.1:${Number(port) + 1}` }],
    ['another name', { 'sec-fetch-site': undefined, origin: `http://localhost:${port}` }],
    ['null', { 'sec-fetch-site': undefined, origin: 'null' }],
    ['nothing at all', { 'sec-fetch-site': undefined, origin: undefined }],
    ['a Referer alone', { 'sec-fetch-site': undefined, origin: undefined, referer: `${own}/console` }],
  ];
  for (const [name, headers] of foreign) {
    for (const path of ['/console/sign-out', '/console/sign-in', '/console/nothing-here']) {
      const answer = await visit.post(path, { token: visit.value }, { headers });
      expect([answer.status, answer.headers['set-cookie']], `${name} ${path}`).toEqual([403, undefined]);
      expect(answer.text).toContain('did not come from a page of this console');
    }
  }
  expect((await visit.get('/console/jobs')).status).toBe(200);
});

test.for([
  ['a browser that says where it comes from', { 'sec-fetch-site': 'same-origin' }],
  ['plain http by address, with the Origin alone', { 'sec-fetch-site': undefined }],
] as const)('a form of the console is let in: %s', async ([, headers]) => {
  const relay = shared();
  const visit = await visitConsole(relay);
  const answer = await visit.post('/console/sign-out', {}, { headers });
  expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('Signed out')]);
});

test('a link on another site leads in, and what its page embeds or fetches does not', async () => {
  const relay = shared();
  const visit = await visitConsole(relay);
  const ask = async (site: string, mode: string, dest: string) => {
    const headers = { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': dest };
    return (await visit.get('/console/jobs', { headers })).status;
  };
  expect(await ask('cross-site', 'navigate', 'document')).toBe(200);
  expect(await ask('same-site', 'navigate', 'document')).toBe(200);
  expect(await ask('none', 'navigate', 'document')).toBe(200);
  for (const [mode, dest] of [
    ['navigate', 'iframe'],
    ['navigate', 'frame'],
    ['no-cors', 'image'],
    ['no-cors', 'script'],
    ['cors', 'empty'],
    ['cors', 'document'],
    ['websocket', 'websocket'],
  ] as const) {
    expect(await ask('cross-site', mode, dest), `${mode} ${dest}`).toBe(403);
    expect(await ask('same-site', mode, dest), `${mode} ${dest}`).toBe(403);
    expect(await ask('same-origin', mode, dest), `${mode} ${dest}`).toBe(200);
  }
});

test('every answer has the headers of a page: pages, errors, redirects and files', async () => {
  const relay = shared();
  const visit = await visitConsole(relay, { role: 'viewer' });
  const jobs = await visit.get('/console/jobs');
  const assets = [...jobs.html.matchAll(/(?:href|src)="(\/console\/assets\/[^"]+)"/g)].map(
    ([, path]) => path ?? '',
  );
  expect(assets.length).toBeGreaterThan(3);
  const answers = [
    jobs,
    await visit.get('/console/nothing-here'),
    await visit.get('/console/jobs?state=nonsense'),
    await visit.post('/console/sign-out', {}, { headers: { 'sec-fetch-site': 'cross-site' } }),
    await visit.post('/console/sign-out', {}, { headers: { 'content-type': 'text/plain' } }),
    await askConsole(relay, '/console'),
    await askConsole(relay, '/console/sign-in'),
    ...(await Promise.all(assets.map((path) => askConsole(relay, path)))),
  ];
  const statuses = answers.map(({ status }) => status);
  expect(statuses).toEqual([200, 404, 400, 403, 200, 303, 200, ...assets.map(() => 200)]);
  for (const { headers } of answers) {
    expect(headers).toMatchObject({
      'content-security-policy': POLICY,
      'referrer-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'cross-origin-resource-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
    });
    expect(headers['content-security-policy']).not.toContain('unsafe-');
    expect(headers['x-powered-by']).toBeUndefined();
  }
  for (const { headers } of answers.slice(0, 7)) expect(headers['cache-control']).toBe('no-store');
});

test('a form is bounded, and must be one', async () => {
  const relay = shared();
  const post = (form: Record<string, string>, type = 'application/x-www-form-urlencoded') =>
    askConsole(relay, '/console/sign-in', { method: 'POST', form, headers: { 'content-type': type } });
  expect((await post({ token: 'x'.repeat(70_000) })).status).toBe(413);
  expect((await post({ token: 'x' }, 'application/json')).status).toBe(415);
});
