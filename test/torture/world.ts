// A whole installation for faults to strike: a private Postgres and RabbitMQ, replicas as processes, and a TCP proxy on each
// of a replica's three links (sender, Postgres, RabbitMQ). Observers connect past the proxies. Everything ends with the
// world, or with the guard if the harness is killed.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { type Channel, connect } from 'amqplib';
import { Client, type QueryResultRow } from 'pg';
import { makeFolder, makeThrowAwayFolder } from '../../scripts/services/folders.ts';
import type { Guard } from '../../scripts/services/guard.ts';
import { type PostgresServer, startPostgres } from '../../scripts/services/postgres.ts';
import { type RabbitmqServer, startRabbitmq } from '../../scripts/services/rabbitmq.ts';
import { type Disk, mountDisk } from './disk.ts';
import type { Random } from './random.ts';
import { createReplica, type RecordedExit, type Replica } from './replica.ts';
import { createSources, type Sources } from './sources.ts';

export type World = AsyncDisposable & {
  readonly folder: string;
  readonly exchange: string;
  readonly postgres: PostgresServer;
  readonly rabbitmq: RabbitmqServer;
  /** Undefined where none can be mounted: then the data of Postgres is in the folder. */
  readonly disk: Disk | undefined;
  readonly sources: Sources;
  readonly replicas: readonly Replica[];
  /** Every exit so far, asked for or not. */
  readonly exits: readonly RecordedExit[];
  /** Runs one statement on a connection of its own, past the proxies. */
  readonly query: <Row extends QueryResultRow>(
    text: string,
    values?: unknown[],
    limitMs?: number,
  ) => Promise<Row[]>;
  /** Uses a channel of its own, past the proxies. */
  readonly withChannel: <T>(use: (channel: Channel) => Promise<T>) => Promise<T>;
};

const EXCHANGE = 'conversion.events';
const QUERY_LIMIT_MS = 10_000;
const CONNECT_LIMIT_MS = 3_000;
/** By default Postgres keeps up to 1 GB of WAL, for which a small disk has no room. */
const SMALL_LOG = { max_wal_size: '128MB' };

/**
 * Resolves when every replica is ready, unless they are not to be started yet. The guard ends everything if this process cannot.
 * @param options.diskMegabytes the size of a disk for Postgres alone, where one can be mounted.
 * @param options.env settings of the replicas besides the addresses.
 */
export async function startWorld(options: {
  guard: Guard;
  replicas: number;
  random: Random;
  diskMegabytes?: number;
  env?: Readonly<Record<string, string>>;
  startsReplicas?: boolean;
  log?: (line: string) => void;
}): Promise<World> {
  const { guard, random, startsReplicas = true, log = () => {} } = options;
  const stack = new AsyncDisposableStack();
  try {
    const folder = makeThrowAwayFolder(guard);
    const disk =
      options.diskMegabytes === undefined
        ? undefined
        : await mountDisk({ guard, folder, megabytes: options.diskMegabytes, log });
    if (disk !== undefined) stack.use(disk);
    const [postgres, rabbitmq] = await startServices({ guard, folder, disk, stack, log });
    const sources = createSources(join(folder, 'sources.json'), random);
    const exits: RecordedExit[] = [];
    const replicas: Replica[] = [];
    for (let index = 0; index < options.replicas; index++) {
      const replica = await createReplica({
        index,
        guard,
        folder,
        databaseUrl: postgres.url,
        amqpUrl: rabbitmq.url,
        env: {
          AMQP_EXCHANGE: EXCHANGE,
          SIGNING_SECRETS: sources.defaultSecret,
          SOURCES_FILE: sources.file,
          ...options.env,
        },
        onExit: (exit) => exits.push(exit),
      });
      replicas.push(stack.use(replica));
    }
    if (startsReplicas) await Promise.all(replicas.map((replica) => replica.start()));
    return {
      folder,
      exchange: EXCHANGE,
      postgres,
      rabbitmq,
      disk,
      sources,
      replicas,
      exits,
      query: (text, values, limitMs) => query(postgres.url, text, values, limitMs),
      withChannel: (use) => withChannel(rabbitmq.url, use),
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function startServices(options: {
  guard: Guard;
  folder: string;
  disk: Disk | undefined;
  stack: AsyncDisposableStack;
  log: (line: string) => void;
}): Promise<[PostgresServer, RabbitmqServer]> {
  const { guard, folder, disk, stack, log } = options;
  const dir = join(disk?.path ?? folder, 'postgres');
  const rabbitmqDir = join(folder, 'rabbitmq');
  makeFolder(rabbitmqDir);
  const [postgres, rabbitmq] = await Promise.all([
    startPostgres({ dir, guard, log, ...(disk && { settings: SMALL_LOG }) }),
    startRabbitmq({ dir: rabbitmqDir, guard, log }),
  ]);
  stack.use(postgres);
  stack.use(rabbitmq);
  return [postgres, rabbitmq];
}

async function query<Row extends QueryResultRow>(
  url: string,
  text: string,
  values: unknown[] = [],
  limitMs = QUERY_LIMIT_MS,
): Promise<Row[]> {
  const client = new Client({
    connectionString: url,
    application_name: `harness ${randomBytes(2).toString('hex')}`,
    connectionTimeoutMillis: CONNECT_LIMIT_MS,
    query_timeout: limitMs,
  });
  client.on('error', () => {});
  try {
    await client.connect();
    return (await client.query<Row>(text, values)).rows;
  } finally {
    // Not awaited: a frozen server never closes the connection.
    void client.end().catch(() => {});
  }
}

async function withChannel<T>(url: string, use: (channel: Channel) => Promise<T>): Promise<T> {
  const connection = await connect(url, { timeout: CONNECT_LIMIT_MS });
  connection.on('error', () => {});
  try {
    const channel = await connection.createChannel();
    channel.on('error', () => {});
    return await use(channel);
  } finally {
    await connection.close().catch(() => {});
  }
}
