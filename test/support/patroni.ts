// A Postgres cluster on this machine: three members that Patroni runs, one etcd, and HAProxy in front as deploy/haproxy has it. All of it
// is the real thing, on loopback, in a throw-away folder, and ends with the stage or, if we are killed, by its guard. For tests and for
// the torture run, whose faults are `switchOver`, and `kill` of the primary or of a standby.
//
// To be up in seconds, the members begin as copies of one new, empty database, as after a restore of one backup to each, and not by
// Patroni's own base backups. Whatever happens later is Patroni's.
//
// An agent is never frozen: Patroni 3.0.2 with `etcd3` loses acknowledged transactions when its leader's agent is stopped for longer than
// the time to live of the leader's key, and wakes again. That is a fault of its own.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { createGuard } from '../../scripts/services/guard.ts';
import { findFreePort } from '../../scripts/services/ports.ts';
import { childrenOf, sendTo } from '../../scripts/services/processes.ts';
import type { TestDatabase } from './database.ts';
import {
  ask,
  type MemberStatus,
  type PatroniMember,
  type Replication,
  type Settings,
  startMember,
  synchrony,
} from './patroni-member.ts';
import {
  DATABASE,
  endOfLog,
  type Place,
  preparePlace,
  run,
  untilListening,
  scopeOf,
  urlOf,
  USER,
  writeOwn,
} from './patroni-place.ts';
import { startPatroniProxy } from './patroni-proxy.ts';
import { queryOnce } from './transaction.ts';
import { until } from './until.ts';

export type { PatroniMember, Replication } from './patroni-member.ts';

/** Whether all programs are here: `npm test` finds them, or says that it did not. */
export const HAS_PATRONI = ['TEST_PATRONI', 'TEST_ETCD', 'TEST_PG_REWIND', 'TEST_HAPROXY'].every((name) =>
  Boolean(process.env[name]),
);

export type ClusterDatabase = Pick<TestDatabase, 'name' | 'query'>;

export type PatroniCluster = AsyncDisposable & {
  readonly members: readonly PatroniMember[];
  /** `host:port` of each member, with commas between them, as libpq takes several hosts. */
  readonly hosts: string;
  /** `host:port` of HAProxy, which leads to whichever member is the primary. */
  readonly haproxy: string;
  /** As a superuser. `hosts` as above, or a member's. */
  readonly urlOf: (to: { hosts: string; database?: string }) => string;
  /** A new, empty database: a replica has to migrate it (MIGRATE_ON_START). Its queries go to whichever member is the primary. */
  readonly createDatabase: () => Promise<ClusterDatabase>;
  /** Waits for one. */
  readonly primary: () => Promise<PatroniMember>;
  readonly standbys: () => Promise<readonly PatroniMember[]>;
  /** The one that has each commit before it is answered. Waits for one. */
  readonly synchronousStandby: () => Promise<PatroniMember>;
  /** In order, by Patroni, which answers when it is done. @returns the new primary */
  readonly switchOver: () => Promise<PatroniMember>;
  /** Ends the time to live of the leader's key at once, which others wait for. Only for a leader whose agent is dead. */
  readonly endLeadership: () => Promise<void>;
  /** Stops what sends the WAL to the standbys: from now on they are behind. With `false` it goes on. */
  readonly holdBack: (isHeld: boolean) => Promise<void>;
  /** Changes how it replicates from now on: see `untilWhole`. */
  readonly replicate: (how: Replication) => Promise<void>;
  /** Waits until there is a primary, all members run on its timeline, and one is synchronous if one should be. @returns the primary */
  readonly untilWhole: () => Promise<PatroniMember>;
  /**
   * The same, however it replicates. A standby that was the primary while replication was synchronous may still name its standby of that time:
   * promoted when it no longer is, it waits for that one, and Patroni 3.0.2 leaves it so.
   */
  readonly untilFollowed: () => Promise<PatroniMember>;
  /** The end of what the members and etcd have logged. */
  readonly log: () => string;
  readonly close: () => Promise<void>;
};

const NAMES = ['one', 'two', 'three'] as const;

/** A killed leader's key lives on for its time, and a member that diverged is rewound. */
const WHOLE_LIMIT_MS = 60_000;
const POLL_MS = 100;
const CHANGE_LIMIT_MS = 30_000;

/** @throws Error with the ends of the logs */
export async function startPatroni(settings: Settings): Promise<PatroniCluster> {
  const guard = createGuard();
  try {
    const cluster = await startCluster(preparePlace(guard), settings);
    return { ...cluster, close: guard.close, [Symbol.asyncDispose]: guard.close };
  } catch (error) {
    await guard.close();
    throw error;
  }
}

type OpenCluster = Omit<PatroniCluster, 'close' | typeof Symbol.asyncDispose>;

async function startCluster(place: Place, settings: Settings): Promise<OpenCluster> {
  const [etcdPort, firstData] = await Promise.all([startEtcd(place), makeFirstData(place)]);
  const members: PatroniMember[] = [];
  for (const name of NAMES) members.push(await startMember(place, name, { etcdPort, firstData, settings }));
  const haproxy = await startPatroniProxy(place, members);
  const cluster = toCluster(place, { members, haproxy, etcdPort, replication: settings });
  const { host } = await cluster.untilWhole();
  await queryOnce(urlOf(place, { hosts: host, database: 'postgres' }), `create database ${DATABASE}`);
  return cluster;
}

async function startEtcd(place: Place): Promise<number> {
  const [port, peerPort] = [await findFreePort(), await findFreePort()];
  const [url, peerUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`];
  const etcd = run(place, 'etcd', [
    process.env['TEST_ETCD'] ?? 'etcd',
    `--data-dir=${join(place.folder, 'etcd')}`,
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=default=${peerUrl}`,
  ]);
  await untilListening(place, 'etcd', { program: etcd, port });
  return port;
}

/** A new database, which never ran. @returns its folder */
async function makeFirstData(place: Place): Promise<string> {
  const passwordFile = writeOwn(place, 'password', place.password);
  const data = join(place.folder, 'first');
  const initdb = run(place, 'initdb', [
    join(place.binaries, 'initdb'),
    `--pgdata=${data}`,
    `--username=${USER}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--wal-segsize=4',
    '--no-sync',
  ]);
  const { code } = await initdb.exited;
  if (code !== 0) throw new Error(`initdb failed: ${endOfLog(place, 'initdb')}`);
  return data;
}

function toCluster(
  place: Place,
  options: {
    members: readonly PatroniMember[];
    haproxy: string;
    etcdPort: number;
    replication: Replication;
  },
): OpenCluster {
  const { members, haproxy, etcdPort } = options;
  let { replication } = options;
  let held: readonly number[] = [];

  const findPrimary = async () => {
    const all = await statuses();
    return members[all.findIndex(leads)];
  };
  const primary = () => wait('there is a primary', findPrimary);
  const statuses = () => Promise.all(members.map((member) => member.status()));

  /** Patroni knows a moment later than Postgres which standby is synchronous, and promotes no other. */
  async function findSynchronous(): Promise<PatroniMember | undefined> {
    type Known = { members: readonly { name: string; role: string }[] };
    const known = await ask<Known>(await primary(), '/cluster');
    const synchronous = known?.members.find(({ role }) => role === 'sync_standby');
    return members.find(({ name }) => name === synchronous?.name);
  }

  /** The primary, if all others follow it. */
  async function findFollowed(): Promise<{ member: PatroniMember; isAnySynchronous: boolean } | undefined> {
    const all = await statuses();
    const leading = all.find(leads);
    const member = members[all.indexOf(leading)];
    if (leading === undefined || member === undefined) return undefined;
    const areUp = all.every((status) => status?.state === 'running' && status.timeline === leading.timeline);
    const following = (leading.replication ?? []).filter(({ state }) => state === 'streaming');
    const isAnySynchronous = following.some(({ sync_state: how }) => how === 'sync');
    return areUp && following.length === members.length - 1 ? { member, isAnySynchronous } : undefined;
  }

  async function findWhole(): Promise<PatroniMember | undefined> {
    const { member, isAnySynchronous } = (await findFollowed()) ?? {};
    const isKnown = (await findSynchronous()) !== undefined;
    return [isAnySynchronous, isKnown].every((is) => is === replication.synchronous) ? member : undefined;
  }

  const orLog = (error: unknown) => {
    throw new Error(`the cluster is not whole:\n${log()}`, { cause: error });
  };

  async function change(path: string, method: 'POST' | 'PATCH', body: object): Promise<void> {
    const { restPort } = await primary();
    const response = await fetch(`http://127.0.0.1:${restPort}${path}`, {
      method,
      body: JSON.stringify(body),
      headers: { Authorization: `Basic ${Buffer.from(`${USER}:${place.password}`).toString('base64')}` },
      signal: AbortSignal.timeout(CHANGE_LIMIT_MS),
    });
    if (!response.ok) throw new Error(`Patroni refused ${path}: ${await response.text()}`);
  }

  const log = () => ['etcd', ...NAMES].map((name) => endOfLog(place, name)).join('\n');

  async function switchOver(): Promise<PatroniMember> {
    const old = await primary();
    await change('/switchover', 'POST', { leader: old.name });
    return wait('another member is the primary', async () => {
      const found = await findPrimary();
      return found === old ? undefined : found;
    });
  }

  async function holdBack(isHeld: boolean): Promise<void> {
    const pid = isHeld ? (await primary()).pid() : undefined;
    const senders = pid === undefined ? [] : childrenOf(pid).filter(({ args }) => args.includes('walsender'));
    if (isHeld && senders.length === 0) throw new Error('nothing sends WAL');
    for (const sender of held) sendTo(sender, 'SIGCONT');
    held = senders.map((sender) => sender.pid);
    for (const sender of held) sendTo(sender, 'SIGSTOP');
  }

  const urlNow = async (database: string) => urlOf(place, { hosts: (await primary()).host, database });

  async function createDatabase(): Promise<ClusterDatabase> {
    const name = `test_${randomBytes(6).toString('hex')}`;
    await queryOnce(await urlNow(DATABASE), `create database ${name}`);
    return { name, query: async (text, values) => queryOnce(await urlNow(name), text, values) };
  }

  return {
    members,
    hosts: members.map(({ host }) => host).join(','),
    haproxy,
    urlOf: (to) => urlOf(place, to),
    createDatabase,
    primary,
    standbys: async () => {
      const leading = await primary();
      return members.filter((member) => member !== leading);
    },
    synchronousStandby: () => wait('a standby is synchronous', findSynchronous),
    switchOver,
    endLeadership: () => deleteLeaderKey(place, etcdPort),
    holdBack,
    replicate: async (how) => {
      replication = how;
      await change('/config', 'PATCH', synchrony(how));
    },
    untilWhole: () => wait('the cluster is whole', findWhole).catch(orLog),
    untilFollowed: async () => (await wait('all follow the primary', findFollowed).catch(orLog)).member,
    log,
  };
}

async function deleteLeaderKey(place: Place, etcdPort: number): Promise<void> {
  const key = Buffer.from(`/service/${scopeOf(place)}/leader`).toString('base64');
  const response = await fetch(`http://127.0.0.1:${etcdPort}/v3/kv/deleterange`, {
    method: 'POST',
    body: JSON.stringify({ key }),
    signal: AbortSignal.timeout(CHANGE_LIMIT_MS),
  });
  const { deleted } = (await response.json()) as { deleted?: string };
  if (deleted !== '1') throw new Error('there is no leader’s key');
}

const wait = <T>(what: string, look: () => Promise<T | undefined>) =>
  until(what, look, { limitMs: WHOLE_LIMIT_MS, pollMs: POLL_MS });

/** Patroni's REST API has this word for the primary. */
const leads = (status: MemberStatus | undefined) => status?.role === 'master' && status.state === 'running';
