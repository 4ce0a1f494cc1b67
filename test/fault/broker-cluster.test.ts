// A RabbitMQ cluster of three nodes, each of whose URLs two replicas and a subscriber know, with quorum queues: one node killed, each
// in turn, all restarted in turn, and one cut off from the others. Prints the longest pauses, which docs/servers.md has.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { IS_SHORT_RUN } from '../only-in-all.ts';
import { newExchange, subscribeDurably } from '../support/bus.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { altered, eventIds, outOfOrder, untilOutboxEmpty } from '../support/facts.ts';
import { type Load, startLoad } from '../support/load.ts';
import { type RabbitmqCluster, type RabbitmqNode, startRabbitmqCluster } from '../support/rabbitmq-cluster.ts';
import { type Replica, startReplica } from '../support/replica.ts';
import { waitFor } from '../support/waits.ts';

let cluster: RabbitmqCluster;

beforeAll(async () => {
  cluster = await startRabbitmqCluster();
});

afterAll(() => cluster.close());

const LONG = { timeout: 60_000 };

type World = AsyncDisposable & {
  readonly replicas: readonly Replica[];
  readonly database: TestDatabase;
  readonly load: Load;
  readonly subscriber: Awaited<ReturnType<typeof subscribeDurably>>;
  /** Waits until an event that is acknowledged from now on has arrived. */
  readonly flows: () => Promise<void>;
  /** Ends the load; then all that is promised is checked. */
  readonly check: (what: string) => Promise<void>;
};

async function startWorld(replicaCount: number): Promise<World> {
  await using stack = new AsyncDisposableStack();
  const exchange = newExchange();
  const database = stack.use(await createTestDatabase());
  const subscriber = stack.use(await subscribeDurably(cluster.url, exchange));
  const env = { AMQP_URL: cluster.url };
  const replicas = await Promise.all(
    Array.from({ length: replicaCount }, async () =>
      stack.use(await startReplica({ databaseUrl: database.url, exchange, env })),
    ),
  );
  const load = stack.use(
    startLoad(() => replicas.map(({ webhooks }) => webhooks), { senders: 6, pauseMs: 20 }),
  );

  async function flows(): Promise<void> {
    const before = new Set(load.acknowledged());
    await load.reached(before.size + 20);
    const since = [...load.acknowledged()].filter((id) => !before.has(id));
    await subscriber.receivedAll(since.slice(0, 1), 60_000);
  }

  async function check(what: string): Promise<void> {
    await flows();
    await load.stop();
    await untilOutboxEmpty(database, 60_000);
    const tallied = await eventIds(database);
    await subscriber.receivedAll(tallied, 60_000);
    const statuses = Map.groupBy(load.answers, ({ status }) => status);
    console.info(
      `${what}: ${tallied.length} events, ${subscriber.messages.length} messages;`,
      `published nothing for ${await publishedNothingForS(database)} s, nothing arrived for ${silentForS(subscriber)} s;`,
      [...statuses].map(([status, { length }]) => `${length} × ${status}`).join(', '),
    );
    expect(load.answers.filter(({ status }) => ![200, 202, 503].includes(Number(status)))).toEqual([]);
    expect([...load.acknowledged()].filter((id) => !tallied.includes(id))).toEqual([]);
    expect(subscriber.ids().filter((id) => !tallied.includes(id))).toEqual([]);
    expect(outOfOrder(subscriber.messages)).toEqual([]);
    expect(altered(subscriber.messages)).toEqual([]);
    expect(replicas.filter((replica) => replica.hasExited())).toEqual([]);
  }

  await subscriber.receivedAll([]);
  await flows();
  const started = stack.move();
  return {
    replicas,
    database,
    load,
    subscriber,
    flows,
    check,
    [Symbol.asyncDispose]: () => started[Symbol.asyncDispose](),
  };
}

async function publishedNothingForS({ query }: TestDatabase): Promise<string> {
  const [row] = await query<{ seconds: string }>(`
    select round(extract(epoch from max(gap))::numeric, 1) as seconds
    from (select at - lag(at) over (order by at) as gap
      from (select published_at as at from publications where result = 'confirmed'
        union all select published_at from publication_batches) confirmed) gaps`);
  return row?.seconds ?? 'unknown';
}

function silentForS({ messages }: World['subscriber']): string {
  const gaps = messages.slice(1).map(({ atMs }, index) => atMs - (messages[index]?.atMs ?? atMs));
  return (Math.max(...gaps) / 1_000).toFixed(1);
}

/** The node that a replica publishes to, by its own log. */
function nodeOf({ log }: Replica): RabbitmqNode {
  const address = log.findLast(({ msg }) => msg === 'broker connected')?.['address'];
  const node = cluster.nodes.find(({ port }) => address === `127.0.0.1:${port}`);
  if (node === undefined) throw new Error(`connected to ${String(address)}, which is no node`);
  return node;
}

async function leaderOf({ replicas }: World): Promise<Replica> {
  return waitFor(async () => {
    for (const replica of replicas)
      if ((await replica.metric('tallyhook_relay_lease_held')) === 1) return replica;
    throw new Error('none leads');
  });
}

test('guarantee 4: the node that the leader publishes to is killed, and every event arrives in order by another one', async () => {
  await using world = await startWorld(1);
  const killed = nodeOf(await leaderOf(world));

  await killed.kill('SIGKILL');
  try {
    await world.flows();
    await world.check('killed');
  } finally {
    await killed.start();
  }
});

test.skipIf(IS_SHORT_RUN)('guarantee 4: each node is killed in its turn', async () => {
  await using world = await startWorld(2);
  for (const node of cluster.nodes) {
    await node.kill('SIGKILL');
    await world.flows();
    await node.start();
    await world.flows();
  }
  await world.check('each killed in turn');
});

test.skipIf(IS_SHORT_RUN)('guarantee 4: all nodes are restarted in turn', async () => {
  await using world = await startWorld(2);
  for (const node of cluster.nodes) {
    await node.stop();
    await node.start();
  }
  await world.check('all restarted in turn');
});

test.skipIf(IS_SHORT_RUN)('guarantee 4: the node that the leader publishes to is cut off from the others, and comes back', async () => {
  await using world = await startWorld(2);
  const leader = await leaderOf(world);
  const node = nodeOf(leader);
  node.isolate();
  try {
    await waitFor(() => expect(nodeOf(leader)).not.toBe(node), LONG);
    await world.flows();
  } finally {
    node.rejoin();
  }
  await waitFor(async () => expect(await node.ctl('eval', 'rabbit:is_running().')).toBe('true\n'), LONG);
  await world.check('cut off');
});
