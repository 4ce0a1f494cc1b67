// TLS with a real Postgres and a CA of the test's own: each line of docs/tls.md on it.

import { renameSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectDatabase, type DatabaseConnection } from '../../src/ledger/sessions/database.ts';
import { type Authority, createAuthority, selfSignedCertificate } from '../support/certificate.ts';
import { rowsUnder } from '../support/deploy-page.ts';
import { createFolder, type TestFolder } from '../support/folder.ts';
import { createTestLog } from '../support/test-log.ts';
import { startTlsPostgres, type TlsPostgres } from '../support/tls-postgres.ts';
import { saidBy, sentencesFor } from '../support/tls-faults.ts';
import { openSession } from '../support/transaction.ts';
import { until } from '../support/until.ts';

const HBA = `hostssl mutual all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca
hostssl tlsonly all 127.0.0.1/32 scram-sha-256
hostnossl rejected all 127.0.0.1/32 reject
host tallyhook all 127.0.0.1/32 scram-sha-256`;

let authority: Authority;
let postgres: TlsPostgres;
let folder: TestFolder;
/** Files of the client. */
let ca: string;
let pair: string;

beforeAll(async () => {
  authority = createAuthority();
  folder = await createFolder();
  ca = await folder.write('ca.pem', authority.cert);
  pair = await writePair('client', authority);
  postgres = await startTlsPostgres({ ca: authority.cert, certificate: authority.issue(), hba: HBA });
  await using session = await openSession({ url: postgres.adminUrl });
  for (const name of ['mutual', 'tlsonly', 'rejected']) await session.query(`create database ${name}`);
});
afterAll(async () => {
  await postgres?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

/** @returns what a URL says of it */
async function writePair(name: string, from: Authority): Promise<string> {
  const { cert, key } = from.issue({ name: 'tallyhook', hosts: [] });
  return `sslcert=${await folder.write(`${name}.pem`, cert)}&sslkey=${await folder.write(`${name}.key`, key)}`;
}

const trusted = () => `sslrootcert=${ca}`;
const withQuery = (url: string, ...parts: readonly string[]) =>
  `${url}?${parts.filter((part) => part !== '').join('&')}`;
const full = (url: string, ...parts: readonly string[]) => withQuery(url, 'sslmode=verify-full', ...parts);
const toDatabase = (name: string) => postgres.url.replace(/\/tallyhook$/, `/${name}`);

function open(url: string, log = createTestLog()): DatabaseConnection & AsyncDisposable {
  const connection = connectDatabase({
    url,
    name: 'trial',
    connections: 1,
    statementTimeoutMs: 10_000,
    lockTimeoutMs: 10_000,
    queryTimeoutMs: 11_000,
    connectTimeoutMs: 10_000,
    log: log.log,
  });
  return Object.assign(connection, { [Symbol.asyncDispose]: connection.close });
}

const SSL = { name: 'ssl', text: 'select ssl from pg_stat_ssl where pid = pg_backend_pid()' };

/** `TLS`, `plain` or `refused`. */
async function outcomeOf(url: string): Promise<string> {
  try {
    await using connection = open(url);
    const [row] = await connection.execute<{ ssl: boolean }>(SSL, []);
    return row?.ssl ? 'TLS' : 'plain';
  } catch {
    return 'refused';
  }
}

/** The sentence of the error, which is also the log's. */
async function faultOf(url: string, log = createTestLog()): Promise<string> {
  await using connection = open(url, log);
  const error = await connection.execute(SSL, []).then(
    () => undefined,
    (reason: unknown) => reason as Error & { code?: unknown },
  );
  expect(error).toMatchObject({ name: 'SessionError', code: 'tls_failed' });
  const message = error?.message ?? '';
  expect(log.lines.map(({ msg }) => msg)).toContain(`a session with Postgres cannot be used: ${message}`);
  expect(JSON.stringify(log.lines)).not.toContain(new URL(url).password);
  return message;
}

test('each mode of the table does what its line says', async () => {
  const rows = rowsUnder('Postgres', 'tls.md').map(([mode = '', ...cells]) => {
    const [, query = ''] = /^`(.+)`$/.exec(mode) ?? [];
    return { mode, query, cells };
  });
  expect(rows.length).toBeGreaterThan(10);
  // Certificates in turn, since the server shows one at a time.
  const found = new Map<string, string[]>(rows.map(({ mode }) => [mode, []]));
  const tryAll = async (urlFor: (query: string) => string) => {
    for (const { mode, query } of rows) found.get(mode)?.push(await outcomeOf(urlFor(query)));
  };
  await tryAll((query) => withQuery(postgres.url, query));
  await tryAll((query) => withQuery(postgres.url, query, trusted()));
  await postgres.show(authority.issue({ hosts: ['elsewhere.example'] }));
  await tryAll((query) => withQuery(postgres.url, query, trusted()));
  await postgres.show(authority.issue({ days: -1 }));
  await tryAll((query) => withQuery(postgres.url, query, trusted()));
  await postgres.show(authority.issue());
  const without = process.env['TEST_DATABASE_URL'] as string; // the run's, which has no certificate
  await tryAll((query) => withQuery(without, query));
  expect([...found].map(([mode, cells]) => [mode, ...cells])).toEqual(
    rows.map(({ mode, cells }) => [mode, ...cells]),
  );
});

test('each fault has its sentence, in the error and in the log', async () => {
  const stranger = createAuthority('a stranger');
  const showing = async (certificate: Parameters<TlsPostgres['show']>[0], url: string) => {
    await postgres.show(certificate);
    const sentence = await faultOf(url);
    await postgres.show(authority.issue());
    return sentence;
  };
  const said = await saidBy({
    "the server's certificate has expired": () =>
      showing(authority.issue({ days: -1 }), full(postgres.url, trusted())),
    'it is for another host': () =>
      showing(authority.issue({ hosts: ['elsewhere.example'] }), full(postgres.url, trusted())),
    'it is signed by itself': () => showing(selfSignedCertificate(), full(postgres.url, trusted())),
    'it is of another CA, or no CA is named': () => faultOf(full(postgres.url)),
    'the server wants a certificate of its clients': () => faultOf(full(toDatabase('mutual'), trusted())),
    'it does not trust that certificate': async () =>
      faultOf(full(toDatabase('mutual'), trusted(), await writePair('strange', stranger))),
    'only the client uses TLS': () => faultOf(full(process.env['TEST_DATABASE_URL'] as string)),
    'only the server uses TLS': () => faultOf(toDatabase('tlsonly')),
    'a file is gone': () => missing(full(postgres.url, trusted())),
  });
  expect(said).toEqual(sentencesFor('Postgres'));
  expect(await faultOf(toDatabase('rejected'))).toContain('with TLS alone');
  expect(await outcomeOf(full(toDatabase('mutual'), trusted(), pair))).toBe('TLS');
});

test('a renewed certificate, of another CA, is believed by the next connection, without a new pool', async () => {
  const next = createAuthority('the next one');
  await using connection = open(withQuery(postgres.url, trusted()));
  await connection.execute(SSL, []);
  await postgres.show(next.issue());
  writeFileSync(ca, `${authority.cert}${next.cert}`);
  await using session = await openSession({ url: postgres.adminUrl });
  await session.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'tallyhook%'`,
  );
  await until('it is connected again', () => connection.execute(SSL, []), { limitMs: 20_000 });
  expect(connection.opened()).toBe(2);
});

/**
 * With a file that goes after the start. The second statement gets its connection in a turn of the pool, where nobody would catch
 * what pg throws.
 */
async function missing(url: string): Promise<string> {
  await using connection = open(url);
  renameSync(ca, `${ca}.gone`);
  try {
    const said = await Promise.allSettled([connection.execute(SSL, []), connection.execute(SSL, [])]);
    const [one, other] = said.map((each) => (each as PromiseRejectedResult).reason as Error);
    expect(other).toMatchObject({ code: 'tls_failed' });
    return one?.message ?? '';
  } finally {
    renameSync(`${ca}.gone`, ca);
  }
}
