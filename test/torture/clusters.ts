// A cluster in the place of one server: what strikes the server strikes the primary of Postgres, or one node of RabbitMQ in its turn.

import type { PostgresServer } from '../../scripts/services/postgres.ts';
import type { RabbitmqServer } from '../../scripts/services/rabbitmq.ts';
import type { PatroniCluster, PatroniMember } from '../support/patroni.ts';
import type { RabbitmqCluster, RabbitmqNode } from '../support/rabbitmq-cluster.ts';

/** What observers and faults need of Postgres. */
export type Postgres = Pick<PostgresServer, 'url' | 'start' | 'stop' | 'kill'>;
export type Rabbitmq = Pick<RabbitmqServer, 'url' | 'port' | 'pid' | 'ctl' | 'start' | 'stop' | 'kill'>;

/** `stop` is a switch-over, `kill` ends the primary with its agent, and `start` brings it back as a standby of the next one. */
export function primaryOf(cluster: PatroniCluster): Postgres {
  const ended = new Set<PatroniMember>();
  return {
    url: cluster.urlOf({ hosts: cluster.haproxy }),
    start: async () => {
      for (const member of ended) member.start();
      ended.clear();
      await cluster.untilWhole();
    },
    stop: async () => void (await cluster.switchOver()),
    kill: async () => {
      const primary = await cluster.primary();
      ended.add(primary);
      await primary.kill();
    },
  };
}

export function nodeInTurnOf({ nodes }: RabbitmqCluster): Rabbitmq {
  let turn = 0;
  const node = (at = turn) => nodes[at % nodes.length] as RabbitmqNode;
  /** Until the next fault, whose node is the next one. */
  const heal = async (act: (struck: RabbitmqNode) => Promise<void>) => {
    await act(node());
    turn += 1;
  };
  return {
    url: node().url,
    port: node().port,
    pid: node().pid,
    ctl: (...args) => node().ctl(...args),
    start: () => heal((struck) => struck.start()),
    stop: () => node().stop(),
    kill: (signal) => (signal === 'SIGCONT' ? heal((struck) => struck.kill(signal)) : node().kill(signal)),
  };
}
