// `tallyhook tokens`: the first token has to come from somewhere, and it is the database itself.

import { expect, test } from 'vitest';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase } from '../../support/database.ts';
import { read } from '../../support/operators.ts';
import { startTestService } from '../../support/service.ts';

type Made = { id: string; value: string };

function run(database: { url: string }, args: readonly string[], env: Record<string, string> = {}) {
  return runCommand(['tokens', ...args], {
    env: { DATABASE_URL: database.url, ENVIRONMENT: 'test', ...env },
  });
}

test('a token from the command line opens the API until it is revoked there', async () => {
  await using relay = await startTestService();
  const ask = async (value: string) =>
    (
      await read(
        await fetch(`${relay.operators}/api/v1/tokens`, { headers: { authorization: `Bearer ${value}` } }),
      )
    ).status;

  const made = await run(relay.database, ['create', '--name', 'first', '--role', 'admin']);
  expect(made).toMatchObject({ code: 0, stderr: '' });
  const { id, value } = JSON.parse(made.stdout) as Made;
  expect(value).toMatch(/^thk_test_[\w-]{43}$/);
  expect(await ask(value)).toBe(200);

  const listed = await run(relay.database, ['list']);
  expect(listed.stdout).not.toContain(value);
  expect(JSON.parse(listed.stdout)).toMatchObject({ id, name: 'first', role: 'admin', sources: null });

  const revoked = await run(relay.database, ['revoke', id]);
  expect(JSON.parse(revoked.stdout)).toMatchObject({ id, revoked_at: expect.any(String) });
  expect(await ask(value)).toBe(401);
  expect(await run(relay.database, ['revoke', id])).toMatchObject({ code: 0 });

  expect(
    await relay.database.query('select action, actor, role, token_id, subject from operator_log order by id'),
  ).toEqual([
    { action: 'token.create', actor: 'command line', role: 'admin', token_id: null, subject: id },
    { action: 'token.revoke', actor: 'command line', role: 'admin', token_id: null, subject: id },
  ]);
});

test('a token can be limited to sources and in time, and is live unless the environment is test', async () => {
  await using database = await createTestDatabase();
  const expires = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);

  const args = [
    'create',
    '--name',
    ' ops ',
    '--role',
    'operator',
    '--source',
    'team-a, team-b, team-a',
    '--expires',
    expires,
  ];
  const { stdout } = await run(database, args, { ENVIRONMENT: '' });

  expect(JSON.parse(stdout)).toMatchObject({
    name: 'ops',
    environment: 'live',
    sources: ['team-a', 'team-b'],
    expires_at: `${expires}T00:00:00.000Z`,
    value: expect.stringMatching(/^thk_live_/),
  });
});

test('a token may say in how long it expires', async () => {
  await using database = await createTestDatabase();
  const beforeMs = Date.now();
  const { stdout } = await run(database, ['create', '--name', 'ops', '--role', 'viewer', '--expires', '90d']);
  const inMs = Date.parse((JSON.parse(stdout) as { expires_at: string }).expires_at) - 90 * 86_400_000;
  expect(inMs).toBeGreaterThanOrEqual(beforeMs);
  expect(inMs).toBeLessThanOrEqual(Date.now());
});

test.each([
  [['create'], '--name'],
  [['create', '--name', 'x'], '--role'],
  [['create', '--name', 'x', '--role', 'king'], '--role'],
  [['create', '--name', 'a\nb', '--role', 'viewer'], '--name'],
  [['create', '--name', '\u202e', '--role', 'viewer'], '--name must not hold control or format characters'],
  [['create', '--name', 'x'.repeat(101), '--role', 'viewer'], '--name must be 1 to 100 characters'],
  [['create', '--name', 'x', '--role', 'viewer', '--source', 'a,,b'], '--source'],
  [['create', '--name', 'x', '--role', 'scraper', '--source', 'a'], '--source'],
  [['create', '--name', 'x', '--role', 'viewer', '--expires', 'tomorrow'], '--expires'],
  [['create', '--name', 'x', '--role', 'viewer', '--expires', '2020-01-01'], '--expires'],
  [
    ['create', '--name', 'x', '--role', 'viewer', '--expires', '2099-02-31'],
    '--expires takes a day or a time',
  ],
  [['create', '--name', 'x', '--role', 'viewer', '--expires', '9999-12-31T23:59:59-12:00'], 'the year 10000'],
  [['revoke'], 'id'],
  [['drop'], 'create, list or revoke'],
])('tokens %j is wrong usage', async (args, told) => {
  const { code, stderr, stdout } = await run({ url: 'postgres://127.0.0.1:1/none' }, args);

  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(told);
});

test('a token that is not there cannot be revoked', async () => {
  await using database = await createTestDatabase();

  expect(await run(database, ['revoke', 'tok_none'])).toMatchObject({ code: 1, stdout: '' });
});
