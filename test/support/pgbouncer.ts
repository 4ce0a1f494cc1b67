// A PgBouncer in front of a test's database, with its defaults but for what is given. Runs as another account than root.

import { closeSync, openSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { accountFor, giveTo } from '../../scripts/services/account.ts';
import { lastLines, makeThrowAwayFolder } from '../../scripts/services/folders.ts';
import { createGuard } from '../../scripts/services/guard.ts';
import { findFreePort } from '../../scripts/services/ports.ts';
import { until } from './until.ts';

export async function startPgbouncer(
  databaseUrl: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<AsyncDisposable & { readonly url: string }> {
  const to = new URL(databaseUrl);
  const guard = createGuard();
  const folder = makeThrowAwayFolder(guard);
  const port = await findFreePort();
  const file = join(folder, 'pgbouncer.ini');
  const log = join(folder, 'pgbouncer.log');
  const lines = {
    listen_addr: '127.0.0.1',
    listen_port: String(port),
    unix_socket_dir: '',
    auth_type: 'any',
    ...settings,
  };
  writeFileSync(
    file,
    `[databases]
* = host=${to.hostname} port=${to.port || '5432'} user=${to.username} password=${to.password}
[pgbouncer]
${Object.entries(lines)
  .map(([name, value]) => `${name} = ${value}\n`)
  .join('')}`,
    { mode: 0o600 },
  );
  const account = accountFor(folder);
  giveTo(account, folder);
  giveTo(account, file);
  const output = openSync(log, 'a', 0o600);
  const pooler = guard.spawn(process.env['TEST_PGBOUNCER'] ?? 'pgbouncer', [file], {
    cwd: folder,
    env: { PATH: process.env['PATH'] },
    account,
    ending: { signal: 'SIGTERM', graceMs: 2_000 },
    output,
  });
  closeSync(output);
  const url = new URL(databaseUrl);
  url.hostname = '127.0.0.1';
  url.port = String(port);
  await until(
    'PgBouncer listens',
    async () => {
      if (pooler.hasExited()) throw new Error(`PgBouncer did not start:\n${lastLines(log, 10)}`);
      return (await isListening(port)) ? true : undefined;
    },
    { limitMs: 20_000 },
  );
  return { url: url.href, [Symbol.asyncDispose]: guard.close };
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.on('connect', () => resolve(true));
    socket.on('error', () => resolve(false));
    socket.on('close', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
}
