// The console from the command line: an address that signs in once, and who is signed in.

import { describe, expect, test } from 'vitest';
import { cliOf } from '../../support/cli.ts';
import { askConsole, sessionIn, visitConsole, visitWith } from '../../support/console.ts';
import { startTestService } from '../../support/service.ts';

const codeIn = (address: string) => new URL(address).searchParams.get('code') ?? '';

test('"console" prints an address that signs in once, with the rights of the token', async () => {
  await using relay = await startTestService();
  const cli = await cliOf(relay, { role: 'viewer', name: 'Ada' });

  const [printed] = await cli.items<{ address: string; expires_at: string }>('console');

  const { address = '', expires_at: expiresAt = '' } = printed ?? {};
  expect(address.startsWith(`${relay.operators}/console/sign-in?code=`)).toBe(true);
  expect(Date.parse(expiresAt) - Date.now()).toBeLessThanOrEqual(10 * 60_000);
  const form = { code: codeIn(address) };
  const first = await askConsole(relay, '/console/sign-in', { method: 'POST', form });
  const visit = visitWith(relay, sessionIn(first) ?? '');
  expect((await visit.get('/console/jobs')).text).toContain('Ada viewer');
  expect((await visit.get('/console/tokens')).status).toBe(403);
  expect((await askConsole(relay, '/console/sign-in', { method: 'POST', form })).status).toBe(401);
});

test('"sessions" lists who is signed in and ends a session', async () => {
  await using relay = await startTestService();
  const visit = await visitConsole(relay, { name: 'somebody' });
  const cli = await cliOf(relay);

  const [session, ...others] = await cli.items<{ id: string; token_name: string }>('sessions', 'list');
  expect(session).toMatchObject({ token_name: 'somebody' });
  expect(others).toEqual([]);
  expect(await cli.items('sessions', 'end', session?.id ?? '')).toEqual([{ id: session?.id, ended: true }]);

  expect((await visit.get('/console/jobs')).status).toBe(303);
  expect(await cli.items('sessions', 'list')).toEqual([]);
  const unknown = await cli.run('sessions', 'end', 'ses_x');
  expect(unknown.code).toBe(1);
  expect(unknown.stderr).toContain('there is no such session');
});

test('"sessions" is for admins, and says so', async () => {
  await using relay = await startTestService();
  const cli = await cliOf(relay, { role: 'operator' });
  const { code, stderr } = await cli.run('sessions', 'list');
  expect(code).toBe(1);
  expect(stderr).toContain('this needs the role admin');
});

describe('on a terminal', () => {
  test('the address stands alone, and sessions are a table', async () => {
    await using relay = await startTestService();
    await visitConsole(relay, { name: 'somebody' });
    const cli = await cliOf(relay);

    const printed = await cli.onTerminal(['console']);
    expect(printed.screen).toMatch(/^http:\S+code=[\w-]{43}$/m);
    expect(printed.screen).toContain('signs in once, within ten minutes');
    const table = await cli.onTerminal(['sessions', 'list']);
    expect(table.screen).toContain('somebody');
    expect(table.screen).toContain('last used (UTC)');
  });
});
