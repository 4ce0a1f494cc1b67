// Faults that only a cluster can have. What else strikes it are the faults of one server (torture/clusters.ts).

import type { Fault, Stage } from './types.ts';

/** Longer than the time to live of the leader's key, after which the others elect (test/support/patroni-member.ts). */
const ELECTION_MS = [25_000, 30_000] as const;
/** Longer than RabbitMQ waits for a silent node (test/support/rabbitmq-cluster.ts). */
const PARTITION_MS = [15_000, 20_000] as const;

const patroniOf = ({ world }: Stage) => world.patroni ?? missing('Postgres');
const nodesOf = ({ world }: Stage) => (world.nodes ?? missing('RabbitMQ')).nodes;

function missing(what: string): never {
  throw new Error(`${what} is no cluster here`);
}

const needsPatroni = ({ world }: Stage) =>
  world.patroni === undefined ? 'Postgres is no cluster here' : undefined;
const needsNodes = ({ world }: Stage) =>
  world.nodes === undefined ? 'RabbitMQ is no cluster here' : undefined;

export const clusterFaults: readonly Fault[] = [
  {
    name: 'postgres-primary-lost',
    subject: 'postgres',
    what: 'the primary of a Postgres cluster and its agent are killed, and come back when another one was elected',
    durationMs: ELECTION_MS,
    isAlone: true,
    missing: needsPatroni,
    strike: async ({ world }) => {
      await world.postgres.kill('SIGKILL');
      return { replicas: [], heal: () => world.postgres.start() };
    },
  },
  {
    name: 'postgres-standby-kill',
    subject: 'postgres',
    what: 'SIGKILL to the synchronous standby of a Postgres cluster and its agent, started again',
    missing: needsPatroni,
    strike: async (stage) => {
      const standby = await patroniOf(stage).synchronousStandby();
      await standby.kill();
      return {
        replicas: [],
        heal: async () => {
          standby.start();
          await patroniOf(stage).untilWhole();
        },
      };
    },
  },
  {
    name: 'rabbitmq-rolling-restart',
    subject: 'rabbitmq',
    what: 'every node of a RabbitMQ cluster in turn: stopped in order, started again',
    isAlone: true,
    missing: needsNodes,
    strike: async (stage) => {
      for (const node of nodesOf(stage)) {
        await node.stop();
        await node.start();
      }
      return { replicas: [], heal: () => Promise.resolve() };
    },
  },
  {
    name: 'rabbitmq-partition',
    subject: 'rabbitmq',
    what: 'one node of a RabbitMQ cluster is cut off from the others, and its clients are not',
    durationMs: PARTITION_MS,
    isAlone: true,
    missing: needsNodes,
    strike: async (stage, { random }) => {
      const node = random.pick(nodesOf(stage));
      node.isolate();
      return { replicas: [], heal: async () => node.rejoin() };
    },
  },
];
