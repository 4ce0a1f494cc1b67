// A Postgres of a test's own that speaks TLS, set up as docs/tls.md has it.

import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { Client } from 'pg';
import { accountFor, giveTo } from '../../scripts/services/account.ts';
import { type PostgresServer, startPostgres } from '../../scripts/services/postgres.ts';
import type { Certificate } from './certificate.ts';
import { commandsUnder } from './deploy-page.ts';
import { openSession } from './transaction.ts';
import { until } from './until.ts';

export type TlsPostgres = AsyncDisposable & {
  readonly server: PostgresServer;
  /** Of the database `tallyhook`, by the name `localhost`, for which the certificate is. */
  readonly url: string;
  /** Of the database `postgres`, without TLS. */
  readonly adminUrl: string;
  /** Shows another certificate from now on. */
  readonly show: (certificate: Certificate) => Promise<void>;
};

const LIMIT_MS = 20_000;

/**
 * @param options.ca that it trusts for certificates of clients
 * @param options.hba its pg_hba.conf, beside a line that lets the superuser into `postgres` with a password
 */
export async function startTlsPostgres(options: {
  ca: string;
  certificate: Certificate;
  hba: string;
}): Promise<TlsPostgres> {
  const server = await startPostgres();
  const data = join(server.dir, 'data');
  const account = accountFor(data);
  const adminUrl = server.url.replace(/\/tallyhook$/, '/postgres');
  const [conf = '', ...none] = commandsUnder('Postgres', 'ini', 'tls.md').filter((text) =>
    text.includes('ssl ='),
  );
  if (none.length > 0) throw new Error('docs/tls.md has several postgresql.conf');

  function write(name: string, text: string): void {
    writeFileSync(join(data, name), text, { mode: 0o600 });
    giveTo(account, join(data, name));
  }

  async function reload(): Promise<void> {
    await using session = await openSession({ url: adminUrl });
    await session.query('select pg_reload_conf()');
  }

  async function show({ cert, key }: Certificate): Promise<void> {
    write('postgres.pem', cert);
    write('postgres.key', key);
    await reload();
    const wanted = new X509Certificate(cert).fingerprint256;
    const isShown = async () => ((await shownBy(adminUrl)) === wanted ? true : undefined);
    await until('Postgres shows the certificate', isShown, { limitMs: LIMIT_MS });
  }

  write('pg_hba.conf', `${options.hba}\nhost postgres all 127.0.0.1/32 scram-sha-256\n`);
  write('ca.pem', options.ca);
  write('postgresql.auto.conf', conf);
  await show(options.certificate);
  const url = server.url.replace('127.0.0.1', 'localhost');
  return { server, url, adminUrl, show, [Symbol.asyncDispose]: () => server.close() };
}

/** The fingerprint of its certificate. */
async function shownBy(url: string): Promise<string | undefined> {
  const client = new Client({ connectionString: url, ssl: { rejectUnauthorized: false } });
  client.on('error', () => {});
  await client.connect();
  const { stream } = Reflect.get(client, 'connection') as unknown as { stream: TLSSocket };
  const shown = stream.getPeerX509Certificate()?.fingerprint256;
  await client.end();
  return shown;
}
