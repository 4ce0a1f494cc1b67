// The stage: a private Postgres and RabbitMQ as an operator would run them (durable, sized for the machine), their
// databases, and what the runs share. The same servers and settings serve every subject of a benchmark.

import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import type { Progress } from '../scripts/output.ts';
import { startRelay } from '../scripts/relay.ts';
import type { Guard } from '../scripts/services/guard.ts';
import { findFreePort } from '../scripts/services/ports.ts';
import { type PostgresServer, startPostgres } from '../scripts/services/postgres.ts';
import { type RabbitmqServer, startRabbitmq } from '../scripts/services/rabbitmq.ts';
import { openParts, type Parts } from './parts.ts';

export type Stage = {
  readonly guard: Guard;
  readonly folder: string;
  readonly parts: Parts;
  readonly postgres: PostgresServer;
  readonly rabbitmq: RabbitmqServer;
  readonly databases: Databases;
  readonly secret: string;
};

type Databases = {
  /** An empty one with Tallyhook's schema, or without any (`template0`). @returns its URL. */
  readonly create: (name: string, template?: 'template0') => Promise<string>;
  readonly drop: (name: string) => Promise<void>;
  readonly url: (name: string) => string;
  /** One statement or several in one session, each committed by itself. */
  readonly run: (name: string, statements: readonly string[]) => Promise<Record<string, unknown>[]>;
};

const TEMPLATE = 'bench_template';
const GIB = 1_024 ** 3;

/**
 * Added to what scripts/services/postgres.ts sets, which keeps fsync, full_page_writes and synchronous_commit on.
 * A quarter of the memory for the cache is the usual advice; the WAL may grow so far that a run of seconds sees no
 * checkpoint that was forced by size.
 */
export const POSTGRES_SETTINGS = {
  shared_buffers: `${Math.round(Math.min(2 * GIB, totalmem() / 4) / 1_024 ** 2)}MB`,
  effective_cache_size: `${Math.round(totalmem() / 2 / 1_024 ** 2)}MB`,
  max_wal_size: '8GB',
  min_wal_size: '1GB',
  checkpoint_timeout: '15min',
  maintenance_work_mem: '512MB',
} as const;

/** Kept out of the results: it only signs what the benchmark itself sends. */
const SECRET_BYTES = 32;

export async function setStage(guard: Guard, folder: string, progress: Progress): Promise<Stage> {
  const { during, note: log } = progress;
  const [postgres, rabbitmq] = await Promise.all([
    during('Postgres', () =>
      startPostgres({ dir: join(folder, 'postgres'), guard, log, settings: POSTGRES_SETTINGS }),
    ),
    during('RabbitMQ', () => startRabbitmq({ dir: join(folder, 'rabbitmq'), guard, log })),
  ]);
  const logs = join(folder, 'parts');
  mkdirSync(logs);
  const databases = createDatabases(postgres.url);
  const secret = randomBytes(SECRET_BYTES).toString('hex');
  await during('schema', () => prepareTemplate(guard, { databases, amqpUrl: rabbitmq.url, secret }));
  return { guard, folder, parts: await openParts(guard, logs), postgres, rabbitmq, databases, secret };
}

function createDatabases(serverUrl: string): Databases {
  const url = (name: string) => {
    const changed = new URL(serverUrl);
    changed.pathname = `/${name}`;
    return changed.href;
  };

  async function run(name: string, statements: readonly string[]): Promise<Record<string, unknown>[]> {
    const client = new Client({ connectionString: url(name) });
    client.on('error', () => {});
    await client.connect();
    try {
      let rows: Record<string, unknown>[] = [];
      for (const statement of statements) rows = (await client.query(statement)).rows;
      return rows;
    } finally {
      await client.end();
    }
  }

  const drop = async (name: string) => {
    await run('tallyhook', [`drop database if exists ${name} with (force)`]);
  };
  return {
    url,
    run,
    drop,
    create: async (name, template) => {
      await drop(name);
      await run('tallyhook', [`create database ${name} template ${template ?? TEMPLATE}`]);
      return url(name);
    },
  };
}

/** By a Tallyhook that runs for a moment: the tables, and the partitions that it makes at its start. */
async function prepareTemplate(
  guard: Guard,
  { databases, amqpUrl, secret }: { databases: Databases; amqpUrl: string; secret: string },
): Promise<void> {
  await databases.create(TEMPLATE, 'template0');
  const env = {
    PATH: process.env['PATH'],
    HOST: '127.0.0.1',
    PORT: String(await findFreePort()),
    OPERATOR_PORT: String(await findFreePort()),
    DATABASE_URL: databases.url(TEMPLATE),
    AMQP_URL: amqpUrl,
    SIGNING_SECRETS: secret,
    MIGRATE_ON_START: 'true',
  };
  const relay = await startRelay(guard, { env, logFile: '/dev/null' });
  await relay.end();
}
