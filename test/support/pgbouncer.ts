// A PgBouncer in front of a test's database, with its defaults but for what is given. Runs as another account than root.
// Without an `auth_file` it lets everybody in, and logs in as the user of the database's URL.

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
  /** Settings that name a file, by its content. */
  files: Readonly<Record<string, string>> = {},
): Promise<AsyncDisposable & { readonly url: string }> {
  const to = new URL(databaseUrl);
  const guard = createGuard();
  const folder = makeThrowAwayFolder(guard);
  const port = await findFreePort();
  const log = join(folder, 'pgbouncer.log');
  const account = accountFor(folder);
  giveTo(account, folder);
  const write = (name: string, content: string) => {
    const path = join(folder, name);
    writeFileSync(path, content, { mode: 0o600 });
    giveTo(account, path);
    return path;
  };
  const lines = {
    unix_socket_dir: '',
    auth_type: 'any',
    ...settings,
    listen_addr: '127.0.0.1',
    listen_port: String(port),
    ...Object.fromEntries(Object.entries(files).map(([name, content]) => [name, write(name, content)])),
  };
  const login = 'auth_file' in files ? '' : ` user=${to.username} password=${to.password}`;
  const file = write(
    'pgbouncer.ini',
    `[databases]
* = host=${to.hostname} port=${to.port || '5432'}${login}
[pgbouncer]
${Object.entries(lines)
  .map(([name, value]) => `${name} = ${value}\n`)
  .join('')}`,
  );
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
