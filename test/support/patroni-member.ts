// One member of a Postgres cluster of a test: a Patroni agent and the Postgres that it runs.

import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { giveTo } from '../../scripts/services/account.ts';
import { findFreePort } from '../../scripts/services/ports.ts';
import { childrenOf, listProcesses, sendTo } from '../../scripts/services/processes.ts';
import { logOf, type Place, run, scopeOf, urlOf, USER, writeOwn } from './patroni-place.ts';
import { until } from './until.ts';

export type Replication = {
  /** A standby has each commit before it is answered. */
  readonly synchronous: boolean;
  /** Without any standby nothing is committed, instead of without its copy. */
  readonly strict?: boolean;
};

export type PatroniMember = {
  readonly name: string;
  /** `127.0.0.1:<port>` of its Postgres. */
  readonly host: string;
  readonly port: number;
  /** Of its Postgres, whatever that is at the time: the database `tallyhook`, as a superuser. */
  readonly url: string;
  readonly restPort: number;
  /** Of its postmaster, if that runs. */
  readonly pid: () => number | undefined;
  /** SIGKILL to the agent, its Postgres and all children of that. Resolves when they are gone. */
  readonly kill: () => Promise<void>;
  /** The same to the agent alone: its Postgres goes on, and is what it was, whatever the others elect. */
  readonly killAgent: () => Promise<void>;
  /** Starts the agent, which starts Postgres. Does not wait for that, and does nothing if the agent runs. */
  readonly start: () => void;
  /** All that its agent and its Postgres have logged. */
  readonly log: () => string;
  /** What Patroni's REST API says of it; undefined while it does not answer. */
  readonly status: () => Promise<MemberStatus | undefined>;
};

export type MemberStatus = {
  readonly role: string;
  readonly state: string;
  readonly timeline?: number;
  readonly replication?: readonly { application_name: string; state: string; sync_state: string }[];
};

/** Of the whole cluster. */
export type Settings = Replication & {
  /** How far a standby may be behind and still become the primary. */
  readonly maximumLagBytes?: number;
};

/**
 * Patroni's least, so that nobody waits longer than needed: when a primary's machine is lost, the others elect after `ttl`. It has to be
 * at least `loop_wait` and twice `retry_timeout`.
 */
const TIMES = { ttl: 20, loop_wait: 1, retry_timeout: 5 } as const;

/** A member that was killed finds the WAL in which it diverged. */
const SHARED_SETTINGS = { wal_keep_size: '128MB' } as const;

const OWN_SETTINGS = {
  shared_buffers: '32MB',
  unix_socket_directories: '',
  // In the data folder and not in /dev/shm, so that nothing is left behind when it is killed.
  dynamic_shared_memory_type: 'mmap',
  huge_pages: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
} as const;

const REST_TIMEOUT_MS = 2_000;
const GONE_LIMIT_MS = 10_000;

/** `firstData`: a data folder that is copied. */
export async function startMember(
  place: Place,
  name: string,
  options: { etcdPort: number; firstData: string; settings: Settings },
): Promise<PatroniMember> {
  const { folder, account } = place;
  const home = join(folder, name);
  mkdirSync(home, { mode: 0o700 });
  giveTo(account, home);
  const data = join(home, 'data');
  const { status } = spawnSync('cp', ['-R', options.firstData, data], { cwd: '/', ...account });
  if (status !== 0) throw new Error(`the data of member ${name} could not be copied`);
  const [port, restPort] = [await findFreePort(), await findFreePort()];
  const content = configurationOf(place, { ...options, name, home, data, port, restPort });
  const file = writeOwn(place, `${name}/patroni.yml`, JSON.stringify(content)); // JSON is YAML

  const program = process.env['TEST_PATRONI'] ?? 'patroni';
  const launch = () => run(place, name, [program, file], { env: { HOME: home }, ending: 'SIGKILL' });
  let agent = launch();
  const pid = () => postmasterOf(data);
  const host = `127.0.0.1:${port}`;

  async function killAgent(): Promise<void> {
    agent.send('SIGKILL');
    await agent.exited;
  }

  return {
    name,
    host,
    port,
    restPort,
    url: urlOf(place, { hosts: host }),
    pid,
    killAgent,
    kill: async () => {
      await killAgent();
      const postmaster = pid();
      if (postmaster !== undefined) await killTree(postmaster);
    },
    start: () => {
      if (agent.hasExited()) agent = launch();
    },
    log: () => readFileSync(logOf(place, name), 'utf8'),
    status: () => ask<MemberStatus>({ restPort }, '/patroni'),
  };
}

function configurationOf(
  place: Place,
  member: {
    etcdPort: number;
    settings: Settings;
    name: string;
    home: string;
    data: string;
    port: number;
    restPort: number;
  },
): object {
  const { binaries, password } = place;
  const { etcdPort, settings, name, home, data, port, restPort } = member;
  const account = { username: USER, password };
  return {
    scope: scopeOf(place),
    name,
    restapi: {
      listen: `127.0.0.1:${restPort}`,
      connect_address: `127.0.0.1:${restPort}`,
      authentication: account,
    },
    etcd3: { host: `127.0.0.1:${etcdPort}` },
    bootstrap: {
      dcs: {
        ...TIMES,
        ...synchrony(settings),
        ...(settings.maximumLagBytes !== undefined && { maximum_lag_on_failover: settings.maximumLagBytes }),
        postgresql: { use_pg_rewind: true, use_slots: true, parameters: SHARED_SETTINGS },
      },
    },
    postgresql: {
      listen: `127.0.0.1:${port}`,
      connect_address: `127.0.0.1:${port}`,
      data_dir: data,
      bin_dir: binaries,
      pgpass: join(home, 'pgpass'),
      authentication: { superuser: account, replication: account, rewind: account },
      parameters: OWN_SETTINGS,
      pg_hba: ['host all all 127.0.0.1/32 scram-sha-256', 'host replication all 127.0.0.1/32 scram-sha-256'],
    },
    watchdog: { mode: 'off' },
  };
}

/** As Patroni names it. */
export const synchrony = ({ synchronous, strict = false }: Replication) => ({
  synchronous_mode: synchronous,
  synchronous_mode_strict: strict,
});

/** Undefined if the API does not answer. Its status code is no error: it says what the member is. */
export async function ask<T>(
  { restPort }: Pick<PatroniMember, 'restPort'>,
  path: string,
): Promise<T | undefined> {
  try {
    const response = await fetch(`http://127.0.0.1:${restPort}${path}`, {
      signal: AbortSignal.timeout(REST_TIMEOUT_MS),
    });
    return (await response.json()) as T;
  } catch {
    return undefined;
  }
}

/** By the process that has this folder in its arguments: a killed one leaves a file behind that names it. */
const postmasterOf = (data: string): number | undefined =>
  listProcesses().find(({ args, isZombie }) => !isZombie && args.includes(` -D ${data} `))?.pid;

async function killTree(postmaster: number): Promise<void> {
  // So that it starts no new children while they are listed.
  sendTo(postmaster, 'SIGSTOP');
  const all = [postmaster, ...childrenOf(postmaster).map(({ pid }) => pid)];
  for (const pid of all) sendTo(pid, 'SIGKILL');
  await until(
    'the Postgres is gone',
    () => (listProcesses().some(({ pid, isZombie }) => all.includes(pid) && !isZombie) ? undefined : true),
    { limitMs: GONE_LIMIT_MS },
  );
}
