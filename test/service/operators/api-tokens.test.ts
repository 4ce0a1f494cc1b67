// What a token can be, by whichever way it is made, and what the operators’ side says to those who come without one or ask
// in another way than it takes.

// oxlint-disable vitest/no-standalone-expect -- `it` is vitest's test with a fixture, which the rule does not know

import { expect, test } from 'vitest';
import { createFolder } from '../../support/folder.ts';
import { operators, read } from '../../support/operators.ts';
import { completed, deliver, newJobId, SECRET } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';

/** One service for all. Its source `seen-once` is for one test alone. */
const it = test.extend<{ relay: TestService }>({
  relay: [
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what is needed from it
    async ({}, use) => {
      await using folder = await createFolder();
      const sources = JSON.stringify({ 'seen-once': { secrets: [SECRET] } });
      await using relay = await startTestService({
        env: { METRICS_OPEN: 'false', SOURCES_FILE: await folder.write('sources.json', sources) },
      });
      await use(relay);
    },
    { scope: 'file' },
  ],
});

it('a source that a token names twice counts once', async ({ relay }) => {
  const admin = await operators(relay);

  const made = await admin.post('/tokens', {
    name: 'twice',
    role: 'auditor',
    sources: ['default', 'other', 'default'],
  });
  expect(made).toMatchObject({ status: 201, body: { sources: ['default', 'other'] } });
  expect(await relay.database.query(`select sources from tokens where name = 'twice'`)).toEqual([
    { sources: ['default', 'other'] },
  ]);
});

it('a token that was made with a source named twice sees each row once', async ({ relay }) => {
  const auditor = await operators(relay, { role: 'auditor', sources: ['seen-once'] });
  await relay.database.query(`update tokens set sources = '{seen-once,seen-once}' where id = $1`, [
    auditor.token.id,
  ]);
  await deliver(`${relay.webhooks}/seen-once`, completed(newJobId()));

  for (const list of ['deliveries', 'events', 'jobs']) {
    const { body } = await auditor.get<{ items: unknown[] }>(`/${list}`);
    expect(body.items).toHaveLength(1);
    const { text } = await auditor.get(`/export?list=${list}`);
    expect(text.trim().split('\n')).toHaveLength(1);
  }
});

it.for(['\u202e', 'a\u200bb', 'a\u2066b', 'a\nb', 'a\u2028b', '\u0007'])(
  'a name with characters that cannot be seen, as in %j, is refused',
  async (name, { relay }) => {
    const admin = await operators(relay);

    expect(await admin.post('/tokens', { name, role: 'viewer' })).toMatchObject({
      status: 400,
      body: {
        error: 'invalid_request',
        message: 'name: must not hold control or format characters, or line breaks',
      },
    });
  },
);

it('an answer that asks for a token says in which form', async ({ relay }) => {
  for (const [path, authorization] of [
    ['/api/v1/jobs', undefined],
    ['/api/v1/jobs', 'Bearer thk_test_wrong'],
    ['/api/v1/nowhere', undefined],
    ['/metrics', undefined],
  ] as const) {
    const { status, headers } = await read(
      await fetch(relay.operators + path, { headers: authorization ? { authorization } : {} }),
    );
    expect({ path, status, asked: headers.get('www-authenticate') }).toEqual({
      path,
      status: 401,
      asked: 'Bearer',
    });
  }
});

it('what is only read refuses other methods, and says which it takes', async ({ relay }) => {
  const { value } = await operators(relay, { role: 'scraper' });
  const authorization = `Bearer ${value}`;

  for (const address of [
    `${relay.operators}/livez`,
    `${relay.operators}/readyz`,
    `${relay.operators}/metrics`,
  ]) {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const answer = await read(await fetch(address, { method, headers: { authorization } }));
      expect({ address, method, status: answer.status, allow: answer.headers.get('allow') }).toEqual({
        address,
        method,
        status: 405,
        allow: 'GET, HEAD',
      });
      expect(answer.body).toMatchObject({ error: 'method_not_allowed' });
    }
    const head = await fetch(address, { method: 'HEAD', headers: { authorization } });
    expect(head.status).toBe(200);
  }
  // Whoever has no token is not told more of it than before.
  expect((await fetch(`${relay.operators}/metrics`, { method: 'POST' })).status).toBe(401);
});
