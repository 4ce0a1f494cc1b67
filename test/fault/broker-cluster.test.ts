// A RabbitMQ cluster of three nodes, with quorum queues. Replicas and a subscriber have the URLs of all nodes. One node is killed, each
// in its turn, all are restarted in turn, and one is cut off from the others. Prints the longest pauses, which docs/servers.md has.

import { connect } from 'amqplib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { onOwnChannel } from '../../src/relay/own-channel.ts';
import { IS_SHORT_RUN } from '../only-in-all.ts';
import { newExchange, subscribeDurably } from '../support/bus.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { altered, eventIds, outOfOrder, untilOutboxEmpty } from '../support/facts.ts';
import { longestGapMs, startLoad } from '../support/load.ts';
import {
  HAS_LOOPBACK_NETWORK,
  type RabbitmqCluster,
  type RabbitmqNode,
  startRabbitmqCluster,
} from '../support/rabbitmq-cluster.ts';
import { leaderOf, type Replica, startReplica } from '../support/replica.ts';
import { waitFor } from '../support/waits.ts';

let cluster: RabbitmqCluster;

beforeAll(async () => {
  cluster = await startRabbitmqCluster();
});

afterAll(() => cluster.close());

/** For a cluster with two cores, of which each node that starts takes one. */
const LIMIT_MS = 40_000;

type World = AsyncDisposable & {
  readonly replicas: readonly Replica[];
  /** Waits until an event that is acknowledged from now on has arrived. */
  readonly flows: () => Promise<void>;
  /** Ends the load, and says what is not as promised. `running`: if not all nodes are. */
  readonly broken: (fault: string, running?: readonly RabbitmqNode[]) => Promise<Broken>;
};

type Broken = Readonly<Record<keyof typeof NOTHING, readonly unknown[]>>;

const NOTHING = {
  answers: [],
  lost: [],
  unexpected: [],
  outOfOrder: [],
  altered: [],
  exits: [],
  undeclared: [],
};

/** With load on all replicas. */
async function startWorld({ replicaCount }: { replicaCount: number }): Promise<World> {
  await using starting = new AsyncDisposableStack();
  const exchange = newExchange();
  const database = starting.use(await createTestDatabase());
  const subscriber = starting.use(await subscribeDurably(cluster.url, exchange));
  const env = { AMQP_URL: cluster.url };
  const replicas = await Promise.all(
    Array.from({ length: replicaCount }, async () =>
      starting.use(await startReplica({ databaseUrl: database.url, exchange, env })),
    ),
  );
  const webhooks = replicas.map((replica) => replica.webhooks);
  const load = starting.use(startLoad(() => webhooks, { senders: 6, pauseMs: 20 }));

  async function flows(): Promise<void> {
    const before = new Set(load.acknowledged());
    await load.reached(before.size + 20);
    const next = [...load.acknowledged()].filter((id) => !before.has(id)).slice(0, 1);
    await subscriber.receivedAll(next, LIMIT_MS);
  }

  async function broken(fault: string, running = cluster.nodes): Promise<Broken> {
    await flows();
    await load.stop();
    await untilOutboxEmpty(database, LIMIT_MS);
    const tallied = new Set(await eventIds(database));
    await subscriber.receivedAll(tallied, LIMIT_MS);
    const { messages } = subscriber;
    process.stdout.write(
      `${fault}: ${tallied.size} events, ${messages.length} messages; nothing confirmed for ${await longestWithoutConfirmS(database)} s, nothing received for ${longestSilenceS(messages)} s\n`,
    );
    return {
      answers: load.answers.filter(({ status = 0 }) => ![200, 202, 503].includes(status)),
      lost: [...load.acknowledged()].filter((id) => !tallied.has(id)),
      unexpected: subscriber.ids().filter((id) => !tallied.has(id)),
      outOfOrder: outOfOrder(messages),
      altered: altered(messages),
      exits: replicas.filter((replica) => replica.hasExited()),
      undeclared: await undeclared(running, exchange),
    };
  }

  await flows();
  const started = starting.move();
  return { replicas, flows, broken, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/** What a node says if the exchange or the queue is gone. */
async function undeclared(nodes: readonly RabbitmqNode[], exchange: string): Promise<unknown[]> {
  const faults = await Promise.all(
    nodes.map(async ({ name, url }) => {
      const connection = await connect(url);
      connection.on('error', () => {});
      const queue = `${exchange}.queue`;
      try {
        await onOwnChannel(connection, (channel) => channel.checkExchange(exchange));
        await onOwnChannel(connection, (channel) => channel.checkQueue(queue));
        return undefined;
      } catch (error) {
        return `${name}: ${String(error)}`;
      } finally {
        await connection.close();
      }
    }),
  );
  return faults.filter((fault) => fault !== undefined);
}

async function longestWithoutConfirmS({ query }: TestDatabase): Promise<string> {
  const [row] = await query<{ seconds: string }>(`
    select round(extract(epoch from max(pause)), 1) as seconds
    from (
      select at - lag(at) over (order by at) as pause
      from (
        select published_at as at from publications where result = 'confirmed'
        union all select published_at from publication_batches
      ) confirmed
    ) pauses`);
  return row?.seconds ?? 'unknown';
}

const longestSilenceS = (messages: readonly { readonly atMs: number }[]): string =>
  (longestGapMs(messages.map(({ atMs }) => atMs)) / 1_000).toFixed(1);

const untilLed = ({ replicas }: World): Promise<Replica> =>
  waitFor(async () => {
    const leader = await leaderOf(replicas);
    if (leader === undefined) throw new Error('none leads');
    return leader;
  });

/** The node that a replica publishes to, by its log. */
function nodeOf({ log }: Replica): RabbitmqNode {
  const address = log.findLast(({ msg }) => msg === 'broker connected')?.['address'];
  const found = cluster.nodes.find(({ port }) => address === `127.0.0.1:${port}`);
  if (found === undefined) throw new Error(`${String(address)} is no node of the cluster`);
  return found;
}

test.skipIf(IS_SHORT_RUN || !HAS_LOOPBACK_NETWORK)(
  'guarantee 4: each node is killed in its turn',
  async () => {
    await using world = await startWorld({ replicaCount: 2 });
    for (const node of cluster.nodes) {
      await node.kill('SIGKILL');
      await world.flows();
      await node.start();
      await world.flows();
    }
    expect(await world.broken('each killed in turn')).toEqual(NOTHING);
  },
);

test.skipIf(IS_SHORT_RUN || !HAS_LOOPBACK_NETWORK)(
  'guarantee 4: all nodes are restarted in turn',
  async () => {
    await using world = await startWorld({ replicaCount: 2 });
    for (const node of cluster.nodes) {
      await node.stop();
      await node.start();
    }
    expect(await world.broken('all restarted in turn')).toEqual(NOTHING);
  },
);

test.skipIf(IS_SHORT_RUN || !HAS_LOOPBACK_NETWORK)(
  'guarantee 4: the node that the leader publishes to is cut off from the others, and comes back',
  async () => {
    await using world = await startWorld({ replicaCount: 2 });
    const leader = await untilLed(world);
    const node = nodeOf(leader);

    node.isolate();
    try {
      await waitFor(() => expect(nodeOf(leader)).not.toBe(node), { timeout: LIMIT_MS });
      await world.flows();
    } finally {
      node.rejoin();
    }
    await waitFor(() => connect(node.url).then((connection) => connection.close()), { timeout: LIMIT_MS });
    expect(await world.broken('one cut off')).toEqual(NOTHING);
  },
);

// The last one, since nothing starts that node again.
test.skipIf(!HAS_LOOPBACK_NETWORK)(
  'guarantee 4: the node that the leader publishes to is killed, and every event arrives in order by another one',
  async () => {
    await using world = await startWorld({ replicaCount: 1 });
    const node = nodeOf(await untilLed(world));

    await node.kill('SIGKILL');

    const running = cluster.nodes.filter((other) => other !== node);
    expect(await world.broken('one killed', running)).toEqual(NOTHING);
  },
);
