// Faults of whole processes: they are killed, frozen or restarted.

import { leaderOf } from '../../support/replica.ts';
import type { Replica } from '../replica.ts';
import type { World } from '../world.ts';
import { candidates, type Fault, indexes, lasting, type Stage, type Strike, type Struck } from './types.ts';

/** Every second time the replica that leads the relay, if it can be found. */
async function victim(world: World, how: Strike): Promise<Replica> {
  const choice = candidates(world, how);
  const [fallback, wantsLeader] = [how.random.pick(choice), how.random.chance(0.5)];
  return (wantsLeader ? await leaderOf(choice) : undefined) ?? fallback;
}

const replicaFaults: readonly Fault[] = [
  {
    name: 'replica-kill',
    subject: 'replicas',
    what: 'SIGKILL to one replica, started again',
    strike: async ({ world }, how) => {
      const replica = await victim(world, how);
      await replica.kill('SIGKILL');
      return { replicas: [replica.index], heal: () => replica.start() };
    },
  },
  {
    name: 'replica-freeze',
    subject: 'replicas',
    what: 'SIGSTOP, then SIGCONT to one replica',
    silences: true,
    strike: async ({ world }, how) => {
      const replica = await victim(world, how);
      await replica.kill('SIGSTOP');
      return { replicas: [replica.index], heal: () => replica.kill('SIGCONT') };
    },
  },
  {
    name: 'replica-restart',
    subject: 'replicas',
    what: 'SIGTERM to one replica, started again',
    strike: async ({ world }, how) => {
      const replica = await victim(world, how);
      await replica.stop();
      return { replicas: [replica.index], heal: () => replica.start() };
    },
  },
  {
    name: 'rolling-restart',
    subject: 'replicas',
    what: 'every replica in turn: SIGTERM, started again, ready',
    strike: async ({ world }, how) => {
      const touched = candidates(world, how);
      for (const replica of touched) {
        await replica.stop();
        await replica.start();
      }
      return { replicas: indexes(touched), heal: () => Promise.resolve() };
    },
  },
];

type Server = Pick<World['postgres'], 'kill' | 'start'> & { readonly stop: () => Promise<void> };

/** Longer than the 10 s within which an answer is due, and than heartbeat and confirm deadline (40 s). */
const LONG_MS = { postgres: [12_000, 15_000], rabbitmq: [45_000, 50_000] } as const;

/** The same four faults for each of the two servers. */
function serverFaults(subject: 'postgres' | 'rabbitmq', called: string): readonly Fault[] {
  const server = ({ world }: Stage): Server => world[subject];
  const fault = (
    verb: string,
    what: string,
    strike: (server: Server, how: Strike) => Promise<void>,
    heal: (server: Server) => Promise<void>,
    missing?: Fault['missing'],
  ): Fault => ({
    name: `${subject}-${verb}`,
    subject,
    what,
    ...(missing && { missing }),
    strike: async (stage, how): Promise<Struck> => {
      await strike(server(stage), how);
      return { replicas: [], heal: () => heal(server(stage)) };
    },
  });
  const freeze = fault(
    'freeze',
    `SIGSTOP, then SIGCONT to all of ${called}`,
    (it) => it.kill('SIGSTOP'),
    (it) => it.kill('SIGCONT'),
    ({ world }) =>
      subject === 'postgres' && world.patroni !== undefined
        ? 'a frozen member of Patroni’s loses what was acknowledged, by a fault of its own'
        : undefined,
  );
  return [
    fault(
      'kill',
      `SIGKILL to all of ${called}, started again`,
      (it) => it.kill('SIGKILL'),
      (it) => it.start(),
    ),
    freeze,
    lasting(freeze, LONG_MS[subject]),
    fault(
      'restart',
      `${called} stopped in order, started again`,
      (it) => it.stop(),
      (it) => it.start(),
    ),
  ];
}

export const processFaults: readonly Fault[] = [
  ...replicaFaults,
  ...serverFaults('postgres', 'Postgres'),
  ...serverFaults('rabbitmq', 'RabbitMQ'),
];
