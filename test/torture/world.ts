// A whole installation for faults to strike: a private Postgres and RabbitMQ, or a cluster of either, replicas as processes, and a TCP proxy on each
// of a replica's three links (sender, Postgres, RabbitMQ). Observers connect past the proxies. Everything ends with the
// world, or with the guard if the harness is killed.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { type Channel, connect } from 'amqplib';
import { Client, type QueryResultRow } from 'pg';
import { makeFolder, makeThrowAwayFolder } from '../../scripts/services/folders.ts';
import type { Guard } from '../../scripts/services/guard.ts';
import { startPostgres } from '../../scripts/services/postgres.ts';
import { startRabbitmq } from '../../scripts/services/rabbitmq.ts';
import { type PatroniCluster, startPatroni } from '../support/patroni.ts';
import { type RabbitmqCluster, startRabbitmqCluster } from '../support/rabbitmq-cluster.ts';
import { nodeInTurnOf, type Postgres, primaryOf, type Rabbitmq } from './clusters.ts';
import { type Disk, mountDisk } from './disk.ts';
import type { Random } from './random.ts';
import { createReplica, type RecordedExit, type Replica } from './replica.ts';
import { createSources, type Sources } from './sources.ts';

export type World = AsyncDisposable & {
  readonly folder: string;
  readonly exchange: string;
  readonly postgres: Postgres;
  readonly rabbitmq: Rabbitmq;
  /** Of RabbitMQ's nodes, or its only one. */
  readonly amqpUrls: readonly string[];
  /** Where it is a cluster. */
  readonly patroni: PatroniCluster | undefined;
  readonly nodes: RabbitmqCluster | undefined;
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

/** What a run takes for each of the two. */
export type Servers = {
  readonly postgres: (typeof POSTGRES)[number];
  readonly rabbitmq: (typeof RABBITMQ)[number];
};
export const POSTGRES = ['single', 'patroni'] as const;
export const RABBITMQ = ['single', 'cluster'] as const;
export const SINGLE: Servers = { postgres: 'single', rabbitmq: 'single' };

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
  servers?: Servers;
  env?: Readonly<Record<string, string>>;
  startsReplicas?: boolean;
  log?: (line: string) => void;
}): Promise<World> {
  const { guard, random, startsReplicas = true, servers = SINGLE, log = () => {} } = options;
  const stack = new AsyncDisposableStack();
  try {
    const folder = makeThrowAwayFolder(guard);
    const disk =
      options.diskMegabytes === undefined || servers.postgres === 'patroni'
        ? undefined
        : await mountDisk({ guard, folder, megabytes: options.diskMegabytes, log });
    if (disk !== undefined) stack.use(disk);
    const [databases, brokers] = await Promise.all([
      servers.postgres === 'patroni'
        ? startPatroniFor(stack)
        : startOnePostgres(join(disk?.path ?? folder, 'postgres'), { guard, disk, stack, log }),
      servers.rabbitmq === 'cluster'
        ? startNodes({ guard, stack, log })
        : startOneRabbitmq(join(folder, 'rabbitmq'), { guard, stack, log }),
    ]);
    const { postgres } = databases;
    const { rabbitmq } = brokers;
    const sources = createSources(join(folder, 'sources.json'), random);
    const exits: RecordedExit[] = [];
    const replicas: Replica[] = [];
    for (let index = 0; index < options.replicas; index++) {
      const replica = await createReplica({
        index,
        guard,
        folder,
        databaseUrls: databases.urls,
        amqpUrls: brokers.urls,
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
      amqpUrls: brokers.urls,
      patroni: databases.patroni,
      nodes: brokers.nodes,
      disk,
      sources,
      replicas,
      exits,
      query: (text, values, limitMs) => query(postgres.url, text, values, limitMs),
      withChannel: (use) => withChannel(brokers.urls, use),
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

type Starting = {
  readonly guard: Guard;
  readonly stack: AsyncDisposableStack;
  readonly log: (line: string) => void;
};

async function startOnePostgres(
  dir: string,
  { stack, disk, ...options }: Starting & { disk: Disk | undefined },
) {
  const postgres = stack.use(await startPostgres({ ...options, dir, ...(disk && { settings: SMALL_LOG }) }));
  return { postgres, urls: [postgres.url], patroni: undefined };
}

async function startOneRabbitmq(dir: string, { stack, ...options }: Starting) {
  makeFolder(dir);
  const rabbitmq = stack.use(await startRabbitmq({ ...options, dir }));
  return { rabbitmq, urls: [rabbitmq.url], nodes: undefined };
}

/** Nothing acknowledged may be lost, so it replicates synchronously. */
async function startPatroniFor(stack: AsyncDisposableStack) {
  const patroni = stack.use(await startPatroni({ synchronous: true, strict: true }));
  return { postgres: primaryOf(patroni), urls: patroni.members.map(({ url }) => url), patroni };
}

async function startNodes({ stack, ...options }: Starting) {
  const nodes = stack.use(await startRabbitmqCluster(options));
  return { rabbitmq: nodeInTurnOf(nodes), urls: nodes.nodes.map(({ url }) => url), nodes };
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

/** On the first node that answers. */
async function withChannel<T>(
  [url = '', ...others]: readonly string[],
  use: (channel: Channel) => Promise<T>,
): Promise<T> {
  const connection = await connect(url, { timeout: CONNECT_LIMIT_MS }).catch((error: unknown) => {
    if (others.length === 0) throw error;
  });
  if (connection === undefined) return withChannel(others, use);
  connection.on('error', () => {});
  try {
    const channel = await connection.createChannel();
    channel.on('error', () => {});
    return await use(channel);
  } finally {
    await connection.close().catch(() => {});
  }
}
