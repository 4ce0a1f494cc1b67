// What a token can be, by whichever way it is made, and what the operators’ side says to those who come without one or ask
// in another way than it takes.

import { expect, test } from 'vitest';
import { operators, read } from '../../support/operators.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';

test('a source that a token names twice counts once', async () => {
  await using relay = await startTestService();
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

test('a token that was made with a source named twice sees each row once', async () => {
  await using relay = await startTestService();
  const auditor = await operators(relay, { role: 'auditor', sources: ['default'] });
  await relay.database.query(`update tokens set sources = '{default,default}'`);
  await deliver(relay.webhooks, completed(newJobId()));

  for (const list of ['deliveries', 'events', 'jobs']) {
    const { body } = await auditor.get<{ items: unknown[] }>(`/${list}`);
    expect(body.items).toHaveLength(1);
    const { text } = await auditor.get(`/export?list=${list}`);
    expect(text.trim().split('\n')).toHaveLength(1);
  }
});

test.for(['\u202e', 'a\u200bb', 'a\u2066b', 'a\nb', 'a\u2028b', '\u0007'])(
  'a name with characters that cannot be seen, as in %j, is refused',
  async (name) => {
    await using relay = await startTestService();
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

test('an answer that asks for a token says in which form', async () => {
  await using relay = await startTestService({ env: { METRICS_OPEN: 'false' } });

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

test('what is only read refuses other methods, and says which it takes', async () => {
  await using relay = await startTestService({ env: { METRICS_OPEN: 'false' } });
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
