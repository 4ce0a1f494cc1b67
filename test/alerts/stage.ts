// Where alerts are tried: a private Postgres, on a small disk where one can be mounted, a RabbitMQ, and two replicas as processes with a
// proxy to each server, while a sender delivers all the time. All ends with the guard.

import { execFile, spawnSync } from 'node:child_process';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Channel, connect } from 'amqplib';
import { Client, type QueryResultRow } from 'pg';
import { MAIN } from '../../scripts/program.ts';
import { ROOT } from '../../scripts/relay.ts';
import { lastLines, makeFolder, makeThrowAwayFolder } from '../../scripts/services/folders.ts';
import type { Guard, Guarded } from '../../scripts/services/guard.ts';
import { findFreePort } from '../../scripts/services/ports.ts';
import { type PostgresServer, startPostgres } from '../../scripts/services/postgres.ts';
import { type RabbitmqServer, startRabbitmq } from '../../scripts/services/rabbitmq.ts';
import { type Proxy, startProxy } from '../support/proxy.ts';
import { INHERITED, NO_LOCAL_RUN } from '../support/replica.ts';
import { completed, deliver, newJobId, SECRET } from '../support/sender.ts';
import { until } from '../support/until.ts';
import { type Disk, mountDisk } from '../torture/disk.ts';

export type Replica = {
  readonly webhooks: string;
  readonly port: number;
  /** `host:port` of the operators' port. */
  readonly operators: string;
  readonly postgres: Proxy;
  readonly rabbitmq: Proxy;
  /** Resolves when it is ready. */
  readonly start: () => Promise<void>;
  readonly stop: () => Promise<void>;
  /** Nobody reads its log, or with `false` somebody does again. */
  readonly stallLog: (isStalled: boolean) => void;
};

export type Stage = {
  readonly folder: string;
  readonly replicas: readonly [Replica, Replica];
  readonly broker: Pick<RabbitmqServer, 'ctl'>;
  readonly postgres: Pick<PostgresServer, 'start'>;
  /** Undefined where none can be mounted. */
  readonly disk: Disk | undefined;
  readonly scraperToken: string;
  /** A session of its own, past the proxies. */
  readonly query: <Row extends QueryResultRow>(text: string, values?: unknown[]) => Promise<Row[]>;
  /** Keeps the locks of a statement until it is disposed of. */
  readonly hold: (text: string) => Promise<AsyncDisposable>;
  readonly withChannel: <T>(use: (channel: Channel) => Promise<T>) => Promise<T>;
  /** Of the operators' API of the first replica, by an admin. */
  readonly ask: (path: string, body?: object) => Promise<Record<string, unknown>>;
  /** Where that is, and its token. */
  readonly operator: { readonly operators: string; readonly token: string };
};

export const EXCHANGE = 'conversion.events';
export const QUEUE = 'alerts.subscriber';
/** `late` signs by a secret whose time is over. */
export const SECRETS = {
  default: SECRET,
  steady: 'a-secret-of-the-steady-source-01',
  late: 'an-old-secret-of-the-late-source',
} as const;

/** Of all connections from one address: those of the stage need fewer. */
export const CONNECTIONS_PER_ADDRESS = 60;

const DISK_MB = 400;
const PACE_MS = 500;
const ENDING = { signal: 'SIGTERM', graceMs: 30_000 } as const;
const READY = { limitMs: 60_000 };

export async function startStage(options: {
  guard: Guard;
  log: (line: string) => void;
  /** Of the replicas, besides the addresses. */
  env?: Readonly<Record<string, string>>;
  withDisk?: boolean;
}): Promise<Stage> {
  const { guard, log, withDisk = true } = options;
  const folder = makeThrowAwayFolder(guard);
  const disk = withDisk ? await mountDisk({ guard, folder, megabytes: DISK_MB, log }) : undefined;
  makeFolder(join(folder, 'rabbitmq'));
  const [postgres, broker] = await Promise.all([
    startPostgres({
      guard,
      dir: join(disk?.path ?? folder, 'postgres'),
      // By default Postgres keeps up to 1 GB of WAL, for which a small disk has no room.
      settings: { max_wal_size: '128MB' },
    }),
    startRabbitmq({ guard, dir: join(folder, 'rabbitmq') }),
  ]);
  const sources = {
    steady: { secrets: [SECRETS.steady] },
    late: {
      secrets: [{ secret: SECRETS.late, until: '2026-01-01T00:00:00Z' }, 'the-new-secret-of-the-late-source'],
    },
  };
  writeFileSync(join(folder, 'sources.json'), JSON.stringify(sources), { mode: 0o600 });
  const withChannel = <T>(use: (channel: Channel) => Promise<T>) => onChannel(broker.url, use);
  await withChannel(bindQueue);
  const env = {
    MIGRATE_ON_START: 'true',
    AMQP_EXCHANGE: EXCHANGE,
    SIGNING_SECRETS: SECRETS.default,
    SOURCES_FILE: join(folder, 'sources.json'),
    MAX_CONNECTIONS_PER_ADDRESS: String(CONNECTIONS_PER_ADDRESS),
    ...options.env,
  };
  const one = (name: string) =>
    createReplica({ guard, folder, name, env, postgresUrl: postgres.url, amqpUrl: broker.url });
  const replicas = [await one('first'), await one('second')] as const;
  for (const replica of replicas) await replica.start();
  const [first] = replicas;
  const url = `http://${first.operators}`;
  const [admin, scraperToken] = [
    await makeToken('admin', postgres.url, folder),
    await makeToken('scraper', postgres.url, folder),
  ];
  deliverAllTheTime(guard, replicas);
  return {
    folder,
    replicas,
    broker,
    postgres,
    disk,
    scraperToken,
    query: (text, values) =>
      onSession(postgres.url, async (client) => (await client.query(text, values)).rows),
    hold: (text) => holdLocks(postgres.url, text),
    withChannel,
    ask: (path, body) => askApi(`${url}/api/v1${path}`, admin, body),
    operator: { operators: url, token: admin },
  };
}

/** A subscriber's queue; what it gets is not read. */
export async function bindQueue(channel: Channel): Promise<void> {
  await channel.assertExchange(EXCHANGE, 'topic', { durable: true });
  await channel.assertQueue(QUEUE, { durable: true, maxLength: 1_000 });
  await channel.bindQueue(QUEUE, EXCHANGE, 'job.#');
}

async function createReplica(options: {
  guard: Guard;
  folder: string;
  name: string;
  env: Readonly<Record<string, string>>;
  postgresUrl: string;
  amqpUrl: string;
}): Promise<Replica> {
  const { guard, folder, name } = options;
  const [port, operatorPort] = [await findFreePort(), await findFreePort()];
  const postgres = await startProxy(options.postgresUrl, { defaultPort: 5432, counts: 'bytes' });
  const rabbitmq = await startProxy(options.amqpUrl, { defaultPort: 5672 });
  const operators = `127.0.0.1:${operatorPort}`;
  // Its log goes through a pipe to a program that can be stopped. The pipe's end here stays open: the reader survives restarts.
  const pipe = join(folder, `${name}.pipe`);
  const logFile = join(folder, `${name}.log`);
  spawnSync('mkfifo', [pipe]);
  const written = openSync(pipe, 'r+');
  const logged = openSync(logFile, 'a', 0o600);
  const reader = guard.spawn('cat', [pipe], {
    cwd: folder,
    env: { PATH: process.env['PATH'] },
    ending: { signal: 'SIGKILL', graceMs: 0 },
    output: logged,
  });
  closeSync(logged);
  let running: Guarded | undefined;
  const launch = () =>
    guard.spawn(process.execPath, [MAIN, 'serve'], {
      cwd: ROOT,
      env: {
        ...INHERITED,
        HOST: '127.0.0.1',
        PORT: String(port),
        OPERATOR_PORT: String(operatorPort),
        DATABASE_URL: postgres.url,
        AMQP_URL: rabbitmq.url,
        ...options.env,
      },
      ending: ENDING,
      output: written,
    });
  const isReady = async () => {
    if (running?.hasExited() === true) throw new Error('it ended');
    return (await fetch(`http://${operators}/readyz`)).ok || undefined;
  };
  return {
    webhooks: `http://127.0.0.1:${port}/webhooks`,
    port,
    operators,
    postgres,
    rabbitmq,
    start: async () => {
      running = launch();
      await until(`the ${name} replica is ready`, isReady, READY).catch((cause: unknown) => {
        throw new Error(`the ${name} replica is not ready:\n${lastLines(logFile, 15)}`, { cause });
      });
    },
    stop: async () => void (await running?.end()),
    stallLog: (isStalled) => reader.send(isStalled ? 'SIGSTOP' : 'SIGCONT'),
  };
}

/** To both in turn, also while they cannot answer. */
function deliverAllTheTime(guard: Guard, replicas: readonly Replica[]): void {
  let turn = 0;
  const timer = setInterval(() => {
    if (guard.isClosing()) {
      clearInterval(timer);
      return;
    }
    const { webhooks } = replicas[turn++ % replicas.length] as Replica;
    deliver(webhooks, completed(newJobId())).catch(() => {});
  }, PACE_MS);
  timer.unref();
}

async function askApi(url: string, token: string, body?: object): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
  });
  const answer = (await response.json()) as Record<string, unknown>;
  if (!response.ok) throw new Error(`${url}: ${response.status} ${JSON.stringify(answer)}`);
  return answer;
}

/** As an operator makes one. */
async function makeToken(role: string, databaseUrl: string, cwd: string): Promise<string> {
  const args = ['tokens', 'create', '--name', role, '--role', role];
  const env = { ...INHERITED, ...NO_LOCAL_RUN, DATABASE_URL: databaseUrl };
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args], { cwd, env });
  return (JSON.parse(stdout) as { value: string }).value;
}

async function openClient(url: string): Promise<Client> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 3_000 });
  client.on('error', () => {});
  await client.connect();
  return client;
}

async function onSession<T>(url: string, use: (client: Client) => Promise<T>): Promise<T> {
  const client = await openClient(url);
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

async function holdLocks(url: string, text: string): Promise<AsyncDisposable> {
  const client = await openClient(url);
  await client.query('begin');
  await client.query(text);
  return { [Symbol.asyncDispose]: () => client.end() };
}

async function onChannel<T>(url: string, use: (channel: Channel) => Promise<T>): Promise<T> {
  const connection = await connect(url, { timeout: 3_000 });
  connection.on('error', () => {});
  try {
    const channel = await connection.createChannel();
    channel.on('error', () => {});
    return await use(channel);
  } finally {
    await connection.close().catch(() => {});
  }
}
