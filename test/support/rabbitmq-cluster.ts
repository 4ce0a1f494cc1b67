// A RabbitMQ cluster of three nodes on this machine. Each node has an address of loopback for the other nodes, and each way from
// one node to another leads through a proxy of its own: so a node can be cut off from the others while its clients reach it. Needs
// an operating system that has all of 127.0.0.0/8, as Linux has.

import { randomBytes, randomInt } from 'node:crypto';
import { join } from 'node:path';
import { makeFolder, makeThrowAwayFolder } from '../../scripts/services/folders.ts';
import { findRabbitmq } from '../../scripts/services/find-rabbitmq.ts';
import { createGuard, type Guard } from '../../scripts/services/guard.ts';
import { findFreePort } from '../../scripts/services/ports.ts';
import { type RabbitmqMember, type RabbitmqServer, startRabbitmq } from '../../scripts/services/rabbitmq.ts';
import { type Proxy, startProxy } from './proxy.ts';

export type RabbitmqNode = Pick<
  RabbitmqServer,
  'url' | 'port' | 'pid' | 'dir' | 'ctl' | 'exited' | 'start' | 'stop' | 'kill'
> & {
  /** Erlang's name of it, as RabbitMQ's own commands show it. */
  readonly name: string;
  /** From now on nothing passes between it and the other nodes, as behind a firewall. Its clients reach it. */
  readonly isolate: () => void;
  readonly rejoin: () => void;
};

export type RabbitmqCluster = AsyncDisposable & {
  readonly nodes: readonly RabbitmqNode[];
  /** Of all nodes, with commas between them. */
  readonly url: string;
  readonly close: () => Promise<void>;
};

/** Others have 127.0.0.1 alone. */
export const HAS_LOOPBACK_NETWORK = process.platform === 'linux';

/** A majority stays when one is away. */
const HOSTS = ['node-1', 'node-2', 'node-3'] as const;

/** After so long without a word from another node it counts as gone. RabbitMQ's own value is 60. */
const TICK_S = 8;

/**
 * Resolves when all nodes are one cluster.
 * @param options.tickS after how long, and a quarter more, a silent node counts as gone
 */
export async function startRabbitmqCluster(
  options: { guard?: Guard; tickS?: number; log?: (line: string) => void } = {},
): Promise<RabbitmqCluster> {
  const guard = options.guard ?? createGuard();
  try {
    return await start({ ...options, guard, ownsGuard: options.guard === undefined });
  } catch (error) {
    if (options.guard === undefined) await guard.closeAtOnce();
    throw error;
  }
}

async function start(options: {
  guard: Guard;
  ownsGuard: boolean;
  tickS?: number;
  log?: (line: string) => void;
}): Promise<RabbitmqCluster> {
  const { guard, ownsGuard, tickS = TICK_S, log = () => {} } = options;
  const dir = makeThrowAwayFolder(guard);
  await findRabbitmq({ guard, logFile: join(dir, 'install.log'), log });
  const plan = await makePlan();
  const ways = await openWays(plan);
  const servers = await Promise.all(
    HOSTS.map((host) => {
      const home = join(dir, host);
      makeFolder(home);
      return startRabbitmq({
        dir: home,
        guard,
        member: memberOf(plan, host, tickS),
        settings: settingsOf(plan),
      });
    }),
  );

  async function close(): Promise<void> {
    // Nothing of it is needed any more, and a node that is asked to end waits for the others.
    await Promise.all(servers.map((server) => server.kill('SIGKILL')));
    await Promise.all(ways.map(({ proxy }) => proxy[Symbol.asyncDispose]()));
    if (ownsGuard) await guard.close();
  }

  const nodes = servers.map((server, index) => toNode(server, { plan, host: HOSTS[index] as string, ways }));
  return { nodes, url: nodes.map(({ url }) => url).join(','), close, [Symbol.asyncDispose]: close };
}

type Plan = {
  readonly id: string;
  /** The first three bytes of all addresses. */
  readonly network: string;
  readonly port: number;
  readonly cookie: string;
  readonly password: string;
};

async function makePlan(): Promise<Plan> {
  const [id, cookie, password] = [randomBytes(6), randomBytes(24), randomBytes(24)].map((bytes) =>
    bytes.toString('hex'),
  ) as [string, string, string];
  // Beside another cluster, the same port is free on other addresses.
  const network = `127.${randomInt(1, 255)}.${randomInt(1, 255)}`;
  return { id, network, port: await findFreePort(), cookie, password };
}

const nameOf = ({ id }: Plan, host: string): string => `tallyhook-${id}@${host}`;

const numberOf = (host: string): number => HOSTS.findIndex((each) => each === host) + 1;

const addressOf = ({ network }: Plan, host: string): string => `${network}.${numberOf(host)}`;

/** Where `from` finds `to`: the address of a proxy. */
const addressOfWay = ({ network }: Plan, from: string, to: string): string =>
  `${network}.${numberOf(from)}${numberOf(to)}`;

function memberOf(plan: Plan, host: string, tickS: number): RabbitmqMember {
  const addresses = HOSTS.map((other) => [
    other,
    other === host ? addressOf(plan, host) : addressOfWay(plan, host, other),
  ]);
  return {
    name: nameOf(plan, host),
    address: addressOf(plan, host),
    distributionPort: plan.port,
    addresses: Object.fromEntries(addresses) as Record<string, string>,
    cookie: plan.cookie,
    password: plan.password,
    tickS,
  };
}

/** As docs/servers.md recommends. */
function settingsOf(plan: Plan): Record<string, string> {
  return {
    'cluster_formation.peer_discovery_backend': 'classic_config',
    ...Object.fromEntries(
      HOSTS.map((host) => [`cluster_formation.classic_config.nodes.${numberOf(host)}`, nameOf(plan, host)]),
    ),
    cluster_partition_handling: 'pause_minority',
  };
}

type Way = { readonly from: string; readonly to: string; readonly proxy: Proxy };

function openWays(plan: Plan): Promise<Way[]> {
  const pairs = HOSTS.flatMap((from) => HOSTS.filter((to) => to !== from).map((to) => ({ from, to })));
  return Promise.all(
    pairs.map(async ({ from, to }) => ({
      from,
      to,
      proxy: await startProxy(`tcp://${addressOf(plan, to)}:${plan.port}`, {
        defaultPort: plan.port,
        counts: 'bytes',
        listen: { host: addressOfWay(plan, from, to), port: plan.port },
      }),
    })),
  );
}

function toNode(
  server: RabbitmqServer,
  { plan, host, ways }: { plan: Plan; host: string; ways: readonly Way[] },
): RabbitmqNode {
  const own = ways.filter(({ from, to }) => from === host || to === host);
  return {
    name: nameOf(plan, host),
    url: server.url,
    port: server.port,
    dir: server.dir,
    get pid() {
      return server.pid;
    },
    ctl: server.ctl,
    exited: server.exited,
    start: server.start,
    stop: server.stop,
    kill: server.kill,
    isolate: () => {
      for (const { proxy } of own) proxy.stall();
    },
    rejoin: () => {
      for (const { proxy } of own) {
        // What was sent meanwhile is lost, as on a way that is gone for long.
        proxy.cut();
        proxy.heal();
      }
    },
  };
}
