// The servers and the relay whose pages are pictured, each private and in a throw-away folder.

import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findOrCreateToken } from '../operator-token.ts';
import type { Progress } from '../output.ts';
import { startRelay } from '../relay.ts';
import type { Guard } from '../services/guard.ts';
import { findFreePort } from '../services/ports.ts';
import { startPostgres } from '../services/postgres.ts';
import { startRabbitmq } from '../services/rabbitmq.ts';
import { SOURCES, UNBOUND } from './plan.ts';

export type Stage = {
  readonly databaseUrl: string;
  readonly amqpUrl: string;
  readonly webhooks: string;
  /** The operators' port. */
  readonly operators: string;
  /** Of an admin. */
  readonly token: string;
  readonly secrets: ReadonlyMap<string, string>;
};

/** The usual ports, where they are free: they are read in the pictures. */
const [PORT, OPERATOR_PORT] = [8080, 8081];

export async function setStage(
  guard: Guard,
  folder: string,
  { during, note: log }: Progress,
): Promise<Stage> {
  const [postgres, rabbitmq] = await Promise.all([
    during('Postgres', () => startPostgres({ dir: join(folder, 'postgres'), guard, log })),
    during('RabbitMQ', () => startRabbitmq({ dir: join(folder, 'rabbitmq'), guard, log })),
  ]);
  const secrets = new Map([...SOURCES, UNBOUND].map((source) => [source, randomBytes(32).toString('hex')]));
  const { default: own, ...named } = Object.fromEntries(secrets);
  const sourcesFile = join(folder, 'sources.json');
  const sources = Object.entries(named).map(([name, secret]) => [name, { secrets: [secret] }]);
  writeFileSync(sourcesFile, JSON.stringify(Object.fromEntries(sources)), { mode: 0o600 });
  const port = await findFreePort(PORT);
  const operatorPort = await findFreePort(OPERATOR_PORT);
  const env = {
    // Nothing of the caller's environment: this relay has its defaults.
    PATH: process.env['PATH'],
    HOST: '127.0.0.1',
    PORT: String(port),
    OPERATOR_PORT: String(operatorPort),
    DATABASE_URL: postgres.url,
    AMQP_URL: rabbitmq.url,
    SIGNING_SECRETS: own,
    SOURCES_FILE: sourcesFile,
    MIGRATE_ON_START: 'true',
    // Senders have addresses of documentation (RFC 5737).
    TRUSTED_PROXIES: '127.0.0.1',
    // An event that the broker refuses is parked within a second.
    RELAY_MAX_ATTEMPTS: '3',
    API_REQUESTS_PER_MINUTE: '10000',
  };
  await during('relay', () => startRelay(guard, { env, logFile: join(folder, 'tallyhook.log') }));
  const operators = `http://127.0.0.1:${operatorPort}`;
  const token = await findOrCreateToken({ url: operators, before: undefined, env, name: 'operations' });
  return {
    databaseUrl: postgres.url,
    amqpUrl: rabbitmq.url,
    webhooks: `http://127.0.0.1:${port}/webhooks`,
    operators,
    token,
    secrets,
  };
}
