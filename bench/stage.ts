// Starts what all runs of a benchmark share: a private Postgres and RabbitMQ as an operator would run them (durable, sized for
// the machine), and the databases on them. All subjects use the same servers and settings.

import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { Client, type QueryResultRow } from 'pg';
import type { Progress } from '../scripts/output.ts';
import { NO_LOG, startRelay } from '../scripts/relay.ts';
import type { Guard } from '../scripts/services/guard.ts';
import { findFreePort } from '../scripts/services/ports.ts';
import { type PostgresServer, type PostgresSettings, startPostgres } from '../scripts/services/postgres.ts';
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
  /** Restarts Postgres with these variables added to its environment, until the next restart. */
  readonly restartPostgres: (env?: Readonly<Record<string, string>>) => Promise<void>;
};

type Databases = {
  /** Creates an empty database with Tallyhook's schema, or without any (`template0`). @returns its URL */
  readonly create: (name: string, template?: 'template0') => Promise<string>;
  readonly drop: (name: string) => Promise<void>;
  readonly url: (name: string) => string;
  /** Runs the statements in one session, each committed by itself. Returns the rows of the last one. */
  readonly run: <Row extends QueryResultRow>(name: string, statements: readonly string[]) => Promise<Row[]>;
  readonly connect: (name: string) => Promise<Client>;
};

const TEMPLATE = 'bench_template';
const MIB = 1_024 ** 2;
const GIB = 1_024 ** 3;
/** What Postgres keeps of its WAL for the next writes, instead of making new files. */
const KEPT_WAL_BYTES = GIB;

/**
 * Added to the settings in scripts/services/postgres.ts, which has fsync, full_page_writes and synchronous_commit on. The cache
 * gets a quarter of the memory, as is usually advised: the longest ledger's indexes do not fit into 2 GB. The WAL may grow so
 * much that no checkpoint is forced within a run.
 */
export const POSTGRES_SETTINGS = {
  shared_buffers: `${Math.round(totalmem() / 4 / MIB)}MB`,
  effective_cache_size: `${Math.round(totalmem() / 2 / MIB)}MB`,
  max_wal_size: '8GB',
  min_wal_size: `${KEPT_WAL_BYTES / MIB}MB`,
  checkpoint_timeout: '15min',
  maintenance_work_mem: '512MB',
} as const;

/** The secret signs what the benchmark itself sends. It is not part of the results. */
const SECRET_BYTES = 32;

/** @param changes to the settings of Postgres */
export async function setStage(
  guard: Guard,
  folder: string,
  progress: Progress,
  changes: PostgresSettings = {},
): Promise<Stage> {
  const { during, note: log } = progress;
  let added: Readonly<Record<string, string>> = {};
  const ofPostgres = withEnvironment(guard, () => added);
  const [postgres, rabbitmq] = await Promise.all([
    during('Postgres', () =>
      startPostgres({
        dir: join(folder, 'postgres'),
        guard: ofPostgres,
        log,
        settings: { ...POSTGRES_SETTINGS, ...changes },
      }),
    ),
    during('RabbitMQ', () => startRabbitmq({ dir: join(folder, 'rabbitmq'), guard, log })),
  ]);
  const logs = join(folder, 'parts');
  mkdirSync(logs);
  const databases = createDatabases(postgres.url);
  await during('WAL', () => writeWal(databases));
  const secret = randomBytes(SECRET_BYTES).toString('hex');
  await during('schema', () => prepareTemplate(guard, { databases, amqpUrl: rabbitmq.url, secret }));
  const restartPostgres = async (env: Readonly<Record<string, string>> = {}) => {
    await postgres.stop();
    added = env;
    await postgres.start();
  };
  const parts = await openParts(guard, logs);
  return { guard, folder, parts, postgres, rabbitmq, databases, secret, restartPostgres };
}

/** A guard that adds variables to what is started through it. */
function withEnvironment(guard: Guard, added: () => NodeJS.ProcessEnv): Guard {
  return {
    ...guard,
    spawn: (command, args, options) =>
      guard.spawn(command, args, { ...options, env: { ...options.env, ...added() } }),
  };
}

function createDatabases(serverUrl: string): Databases {
  const url = (name: string) => {
    const changed = new URL(serverUrl);
    changed.pathname = `/${name}`;
    return changed.href;
  };

  async function connect(name: string): Promise<Client> {
    const client = new Client({ connectionString: url(name) });
    client.on('error', () => {});
    await client.connect();
    return client;
  }

  async function run<Row extends QueryResultRow>(
    name: string,
    statements: readonly string[],
  ): Promise<Row[]> {
    const client = await connect(name);
    try {
      let rows: Row[] = [];
      for (const statement of statements) rows = (await client.query<Row>(statement)).rows;
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
    connect,
    drop,
    create: async (name, template) => {
      await drop(name);
      await run('tallyhook', [`create database ${name} template ${template ?? TEMPLATE}`]);
      return url(name);
    },
  };
}

/**
 * A server that has run for a while writes its WAL into files that it has used before. A new server has to make each one first: 16 MiB
 * of zeros, for which all commits wait (45 to 70 ms measured, every 3.5 s at 1,900 deliveries a second). So they are made beforehand.
 */
async function writeWal({ run }: Databases): Promise<void> {
  const part = `select pg_logical_emit_message(false, '', repeat('x', ${16 * MIB}))`;
  const parts = Array.from({ length: KEPT_WAL_BYTES / (16 * MIB) }, () => part);
  await run('tallyhook', [...parts, 'checkpoint']);
}

/** Starts a Tallyhook for a moment: it makes the tables, and the partitions that it makes at every start. */
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
  const relay = await startRelay(guard, { env, logFile: NO_LOG });
  await relay.end();
}
