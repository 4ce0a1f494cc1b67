// TLS with Postgres, as the connection string has it: pg reads the files that it names for each connection, so a renewed one needs
// no restart. Says in one sentence what keeps a client and a server apart.

import { Client, type ClientConfig } from 'pg';
import { SessionError } from '../../base/errors.ts';
import { certificatesFault, type Certificates } from '../../base/net/certificates.ts';
import { tlsFaultOf } from '../../base/net/tls-fault.ts';

const CERTIFICATE = 'sslcert and sslkey in the URL';
const wordsFor = (address: string) => ({
  address,
  trust: 'sslrootcert in the URL',
  certificate: CERTIFICATE,
});

/**
 * A client whose `connect` rejects if the files cannot be read: pg's constructor throws then, in a turn of pg-pool where nothing
 * catches it, and that would end the process.
 */
export function makeClient(config?: string | ClientConfig): Client {
  try {
    return new Client(config);
  } catch (error) {
    return Object.assign(new Client(), { connect: () => Promise.reject(error as Error) });
  }
}

/** What is wrong with what the URL says of TLS, whatever the server does; undefined if nothing is. It quotes no password. */
export function tlsFaultIn(url: string): string | undefined {
  try {
    const { ssl } = new Client({ connectionString: url }) as { ssl: unknown };
    return typeof ssl === 'object' ? certificatesFault(ssl as Certificates) : undefined;
  } catch (error) {
    return tlsFaultOf(error, wordsFor('it')) ?? (error as Error).message; // pg leaves the URL out of it
  }
}

/** Sentences of pg and of the server, which have no code of their own. The server may say it in another language. */
const SAID: readonly (readonly [RegExp, (address: string) => string])[] = [
  [
    /^The server does not support SSL connections$/,
    (address) => `${address} does not speak TLS: let it (ssl = on), or set sslmode=disable in the URL`,
  ],
  [
    /^There was an error establishing an SSL connection$/,
    (address) => `${address} did not answer as Postgres does when it was asked for TLS: is the port right?`,
  ],
  [
    /pg_hba\.conf (entry|rejects connection) .*, no encryption$/,
    (address) =>
      `${address} lets this role and database in with TLS alone (pg_hba.conf): set sslmode=verify-full in the URL`,
  ],
  [
    /connection requires a valid client certificate$/,
    (address) => `${address} wants a certificate of its clients: name one by ${CERTIFICATE}`,
  ],
  [
    /^certificate authentication failed/,
    (address) => `${address} takes our certificate for another role: its common name has to be the role's`,
  ],
];

/** Of an attempt to connect; undefined if it did not fail for TLS. */
export function tlsRefusalOf(
  error: unknown,
  { host, port }: Pick<Client, 'host' | 'port'>,
): SessionError | undefined {
  const address = `${host}:${port}`;
  const message = error instanceof Error ? error.message : '';
  const sentence =
    tlsFaultOf(error, wordsFor(address)) ?? SAID.find(([said]) => said.test(message))?.[1](address);
  return sentence === undefined ? undefined : new SessionError('tls_failed', sentence, { cause: error });
}
