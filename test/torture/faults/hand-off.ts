// Faults that strike the hand-off: the leader goes after it has committed events and before it has published them.

import { pause, until } from '../../support/until.ts';
import { EVENT_KEY } from '../ledger-facts.ts';
import { leaderOf } from '../../support/replica.ts';
import { candidates, type Fault, type Stage, type Strike } from './types.ts';

/** Further writes commit in this time, and nothing is published. */
const HOLD_MS = [0, 80] as const;
/** What was published before has reached the subscriber by then. */
const ARRIVAL_MS = 300;
const QUERY_LIMIT_MS = 2_000;
/** With a dozen senders, some thousand events. Shorter than the confirm deadline of 40 s, or the leader would give up the connection. */
const BACKLOG_MS = [20_000, 25_000] as const;
/** Three leases. */
const TAKEOVER_LIMIT_MS = 10_000;

const PENDING = `select ${EVENT_KEY} as id
from outbox_batches b cross join unnest(b.sequences) as s (sequence) join events e on e.sequence = s.sequence`;

/** Events that are committed and not published; undefined if the ledger does not answer, because of another fault. */
async function countUnpublished({ world, subscriber }: Stage): Promise<number | undefined> {
  const pending = await world.query<{ id: string }>(PENDING, [], QUERY_LIMIT_MS).catch(() => undefined);
  await pause(ARRIVAL_MS);
  return pending?.filter(({ id }) => subscriber?.has(id) !== true).length;
}

const leader = async ({ world }: Stage, how: Strike) => {
  const choice = candidates(world, how);
  return (await leaderOf(choice)) ?? how.random.pick(choice);
};

export const handOffFaults: readonly Fault[] = [
  {
    name: 'hand-off-kill',
    subject: 'replicas',
    what: 'SIGKILL to the leader between a commit and its publish, started again',
    strike: async (stage, how) => {
      const replica = await leader(stage, how);
      const kept = await replica.strikeAtHandOff('SIGKILL', how.random.whole(...HOLD_MS));
      const unpublished = kept === 0 ? 0 : await countUnpublished(stage);
      return { replicas: [replica.index], unpublished, heal: () => replica.start() };
    },
  },
  {
    name: 'hand-off-freeze',
    subject: 'replicas',
    what: 'SIGSTOP, then SIGCONT to the leader between a commit and its publish, which goes out when it continues',
    silences: true,
    strike: async (stage, how) => {
      const replica = await leader(stage, how);
      const kept = await replica.strikeAtHandOff('SIGSTOP', how.random.whole(...HOLD_MS));
      const unpublished = kept === 0 ? 0 : await countUnpublished(stage);
      return { replicas: [replica.index], unpublished, heal: () => replica.kill('SIGCONT') };
    },
  },
  {
    name: 'takeover-deep-backlog',
    subject: 'rabbitmq',
    what: 'RabbitMQ is frozen until some thousand events wait, then the leader is killed and RabbitMQ continues',
    durationMs: BACKLOG_MS,
    isAlone: true,
    missing: ({ world }) =>
      world.nodes === undefined ? undefined : 'a cluster goes on while one node of RabbitMQ is frozen',
    strike: async (stage, how) => {
      const { world } = stage;
      const replica = await leader(stage, how);
      await world.rabbitmq.kill('SIGSTOP');
      await pause(how.forMs);
      const unpublished = await countUnpublished(stage);
      await replica.kill('SIGKILL');
      return {
        replicas: [replica.index],
        unpublished,
        heal: async () => {
          await world.rabbitmq.kill('SIGCONT');
          const others = world.replicas.filter((each) => each !== replica);
          // Otherwise it might lead again itself.
          await until('another replica leads', () => leaderOf(others), { limitMs: TAKEOVER_LIMIT_MS }).catch(
            () => {},
          );
          await replica.start();
        },
      };
    },
  },
];
