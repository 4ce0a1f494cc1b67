// What is said of TLS before anything connects: the variables of the broker, the URL of the database, a subscriber's options.

import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import { expect, test } from 'vitest';
import { loadBus, loadConfig } from '../../src/config.ts';
import type { ConfigError } from '../../src/base/errors.ts';
import { tlsFaultOf } from '../../src/base/net/tls-fault.ts';
import { readSessionUrl } from '../../src/ledger/sessions/session-url.ts';
import { settle } from '../../src/subscriber/settings.ts';
import { createAuthority } from '../support/certificate.ts';
import { createFolder } from '../support/folder.ts';

const authority = createAuthority();
const one = authority.issue({ hosts: [] });
const other = authority.issue({ hosts: [] });

const AMQPS = 'amqps://user:planted@broker/';
const BASE = {
  DATABASE_URL: 'postgres://user:planted@db/x',
  AMQP_URL: AMQPS,
  SIGNING_SECRETS: 'planted-secret-of-a-test',
};

/** The faults of a `ConfigError`, or the message of another one. It quotes nothing that is secret. */
function faultsOf(attempt: () => unknown): readonly string[] {
  try {
    attempt();
  } catch (error) {
    const { faults, message } = error as ConfigError;
    if (/planted|PRIVATE/.test(message)) throw new Error('a secret is quoted', { cause: error });
    return faults ?? [message];
  }
  return [];
}

const read = (query: string) => readSessionUrl(`postgres://user:planted@db/x?${query}`);
const modeOf = (query: string) => new URL(read(query).url).searchParams.get('sslmode');

const settled = (tls: unknown, url = AMQPS) =>
  faultsOf(() =>
    settle({ url, queue: 'q', on: { completed: () => {} }, tls } as Parameters<typeof settle>[0]),
  );

test('the files of the broker’s TLS are checked at the start, by the names of their variables', async () => {
  await using folder = await createFolder();
  const ca = await folder.write('ca.pem', authority.cert);
  const cert = await folder.write('cert.pem', one.cert);
  const key = await folder.write('key.pem', one.key);
  const otherKey = await folder.write('other.pem', other.key);
  const loaded = (env: Record<string, string>) => {
    const faults = faultsOf(() => loadConfig({ ...BASE, ...env }));
    expect(faultsOf(() => loadBus({ ...BASE, ...env }))).toEqual(faults); // `tail` reads the same
    return faults;
  };

  const all = { AMQP_CA_FILE: ca, AMQP_CERT_FILE: cert, AMQP_KEY_FILE: key };
  expect(loadConfig({ ...BASE, ...all }).broker.certificates).toEqual({ ca, cert, key });
  expect(loaded({ AMQP_CA_FILE: folder.path('none.pem') })).toEqual(['AMQP_CA_FILE cannot be read (ENOENT)']);
  expect(loaded({ AMQP_CA_FILE: key })).toEqual(['AMQP_CA_FILE: the CA is no certificate in PEM']);
  expect(loaded({ AMQP_CERT_FILE: cert })).toEqual([
    'AMQP_CERT_FILE: a certificate of the client needs its key, and a key its certificate',
  ]);
  expect(loaded({ AMQP_CERT_FILE: cert, AMQP_KEY_FILE: otherKey })).toEqual([
    'AMQP_CERT_FILE, AMQP_KEY_FILE: the certificate of the client and its key do not fit, or are not in PEM without a passphrase',
  ]);
  expect(loaded({ ...all, AMQP_URL: 'amqp://user:planted@broker/' })).toEqual([
    'AMQP_CA_FILE and AMQP_CERT_FILE and AMQP_KEY_FILE would have no effect: AMQP_URL has to begin with amqps://',
  ]);
});

test('the files that the URL of the database names are checked, too, and are named', async () => {
  await using folder = await createFolder();
  const ca = await folder.write('a CA, 100 % ours.pem', authority.cert);
  const key = await folder.write('key.pem', one.key);
  const gone = folder.path('gone.pem');

  expect(read(`sslrootcert=${encodeURIComponent(ca)}`).url).toContain('sslrootcert=');
  expect(faultsOf(() => read(`sslmode=verify-full&sslrootcert=${gone}`))).toEqual([
    `TLS with the database: ${gone} cannot be read (ENOENT)`,
  ]);
  expect(faultsOf(() => read(`sslrootcert=${key}`))).toEqual([
    'TLS with the database: the CA is no certificate in PEM',
  ]);
  expect(faultsOf(() => read(`sslmode=verify-full&sslkey=${key}`))).toEqual([
    'TLS with the database: a certificate of the client needs its key, and a key its certificate',
  ]);
  expect(faultsOf(() => read('uselibpqcompat=true&sslmode=verify-ca'))).toEqual([
    expect.stringContaining('requires specifying a CA with sslrootcert'),
  ]);
});

test('modes that check everything say so to the driver, whose next version would check less', () => {
  for (const mode of ['allow', 'prefer', 'require', 'verify-ca', 'verify-full'])
    expect(modeOf(`sslmode=${mode}`)).toBe('verify-full');
  for (const mode of ['disable', 'no-verify']) expect(modeOf(`sslmode=${mode}`)).toBe(mode);
  expect(modeOf('uselibpqcompat=true&sslmode=require')).toBe('require');
  expect(modeOf('')).toBeNull();
});

/** What is said of a certificate with these names at a host that is none of them. */
function saidOf(host: string, subjectaltname?: string): string | undefined {
  const certificate = { subject: {}, subjectaltname } as unknown as PeerCertificate;
  const words = { address: `${host}:5671`, trust: 'AMQP_CA_FILE', certificate: 'AMQP_CERT_FILE' };
  return tlsFaultOf(checkServerIdentity(host, certificate), words)?.split(':5671 is ')[1];
}

test('a certificate for another host is told with the kinds of its names', () => {
  const rest = 'and not for this host: connect by a name that it has, or renew it with this one';
  expect(saidOf('127.0.0.1', 'DNS:127.0.0.1')).toBe(`for DNS:127.0.0.1 ${rest}`);
  expect(saidOf('a.example', 'DNS:b.example, IP Address:192.0.2.1')).toBe(
    `for DNS:b.example, IP:192.0.2.1 ${rest}`,
  );
  expect(saidOf('a.example')).toBe(`for no name ${rest}`);
});

test('the option tls of a subscriber is checked before it connects', () => {
  for (const tls of [{}, { ca: authority.cert, ...one }, { ca: [authority.cert] }, () => ({})])
    expect(settled(tls)).toEqual([]);
  expect(settled({ ca: 'ca.pem' })).toEqual([
    expect.stringContaining('tls: the CA is no certificate in PEM'),
  ]);
  expect(settled({ ...one, key: other.key })).toEqual([expect.stringContaining('do not fit')]);
  expect(settled({ cafile: 'ca.pem' })).toEqual([expect.stringContaining('tls: Unrecognized key')]);
  expect(settled({ ca: authority.cert }, 'amqp://broker')).toEqual([
    expect.stringContaining('tls: the URL has to begin with amqps://'),
  ]);
});
