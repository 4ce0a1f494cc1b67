// Samples everything from outside: /proc, /metrics, Postgres' statistics, the broker's queue. It connects past the proxies,
// anew for each sample, since a fault may have broken the connection of the one before. A value that cannot be read in time
// is null: a gap in the record, never an error or a guess.

import { readdirSync, readFileSync } from 'node:fs';
import { Client } from 'pg';
import { readMetrics } from '../support/requests.ts';
import type { Replica } from '../torture/replica.ts';
import type { World } from '../torture/world.ts';
import type { BrokerSample, PostgresSample, ReplicaSample, TableSample } from './record.ts';
import { OUTBOX } from '../support/outbox.ts';

type WorldSample = {
  readonly replicas: Readonly<Record<string, ReplicaSample | null>>;
  readonly postgres: PostgresSample | null;
  readonly broker: BrokerSample;
};

/** Well below the time between two samples. */
const LIMIT_MS = 4_000;
const KIB = 1024;
/** The state of an established connection in /proc/net/tcp. */
const ESTABLISHED = '01';

const CONNECTIONS = `
select application_name as name, count(*)::int as count from pg_stat_activity
where datname = current_database() and backend_type = 'client backend' and application_name like 'tallyhook%'
group by 1 order by 1`;

/** The figures of partitions are added to those of their table. The size functions take the lock of a select. */
const TABLES = `
select coalesce(parent.relname, s.relname) as name,
       sum(pg_table_size(s.relid))::float8 as "tableBytes", sum(pg_indexes_size(s.relid))::float8 as "indexBytes",
       sum(s.n_live_tup)::float8 as live, sum(s.n_dead_tup)::float8 as dead
from pg_stat_user_tables s
left join pg_inherits i on i.inhrelid = s.relid
left join pg_class parent on parent.oid = i.inhparent
where s.schemaname = 'public' and s.relname not like 'kysely%'
  and not exists (select from pg_partitioned_table p where p.partrelid = s.relid)
group by 1 order by 1`;

const STATES = `select state as name, count(*)::int as count from ${OUTBOX} group by 1 order by 1`;

export async function sampleWorld(world: World, queue: string): Promise<WorldSample> {
  const [replicas, postgres, queued] = await Promise.all([
    Promise.all(
      world.replicas.map(async (replica) => [nameOf(replica), await sampleReplica(replica)] as const),
    ),
    within(samplePostgres(world.postgres.url)),
    within(world.withChannel(async (channel) => (await channel.checkQueue(queue)).messageCount)),
  ]);
  return {
    replicas: Object.fromEntries(replicas),
    postgres,
    broker: {
      connections: connectionsTo(world.rabbitmq.port),
      rssBytes: residentBytes(world.rabbitmq.pid),
      queued,
    },
  };
}

function nameOf({ index }: Pick<Replica, 'index'>): string {
  return `replica ${index + 1}`;
}

export async function outboxOf(world: World): Promise<Record<string, number>> {
  const rows = await world.query<{ name: string; count: number }>(STATES);
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]));
}

async function sampleReplica(replica: Replica): Promise<ReplicaSample | null> {
  const pid = replica.pid();
  if (pid === undefined) return null;
  const metrics = await within(readMetrics(replica.operators, { limitMs: LIMIT_MS }));
  const metric = (name: string) => metrics?.get(name) ?? null;
  const lagS = metric('nodejs_eventloop_lag_p99_seconds');
  return {
    pid,
    rssBytes: residentBytes(pid),
    fds: countFds(pid),
    heapBytes: metric('nodejs_heap_size_used_bytes'),
    externalBytes: metric('nodejs_external_memory_bytes'),
    handles: metric('nodejs_active_handles_total'),
    loopLagP99Ms: lagS === null ? null : lagS * 1_000,
    leads: metric('tallyhook_relay_lease_held'),
  };
}

async function samplePostgres(url: string): Promise<PostgresSample> {
  const client = new Client({
    connectionString: url,
    application_name: 'soak',
    connectionTimeoutMillis: LIMIT_MS / 2,
    query_timeout: LIMIT_MS,
    statement_timeout: LIMIT_MS,
  });
  client.on('error', () => {}); // the query fails with it
  try {
    await client.connect();
    const counts = async (text: string) =>
      (await client.query<{ name: string; count: number }>(text)).rows.map(({ name, count }) => [
        name,
        count,
      ]);
    const { rows: tables } = await client.query<TableSample & { name: string }>(TABLES);
    return {
      connections: Object.fromEntries(await counts(CONNECTIONS)),
      tables: Object.fromEntries(tables.map(({ name, ...table }) => [name, table])),
      outbox: Object.fromEntries(await counts(STATES)),
    };
  } finally {
    // Not awaited: a frozen server never closes the connection.
    void client.end().catch(() => {});
  }
}

/** null if it fails or takes too long. */
async function within<T>(asked: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), LIMIT_MS);
  });
  try {
    return await Promise.race([asked, late]);
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
  }
}

export function residentBytes(pid: number): number | null {
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readProc(`${pid}/status`) ?? '')?.[1];
  return kibibytes === undefined ? null : Number(kibibytes) * KIB;
}

function countFds(pid: number): number | null {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return null; // it has ended
  }
}

/** From the kernel, since rabbitmqctl would start a whole Erlang VM for each sample. */
function connectionsTo(port: number): number | null {
  const table = readProc('net/tcp');
  if (table === undefined) return null;
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return table.split('\n').filter((line) => {
    const [, address, , state] = line.trim().split(/\s+/);
    return address?.endsWith(local) === true && state === ESTABLISHED;
  }).length;
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(`/proc/${path}`, 'utf8');
  } catch {
    return undefined;
  }
}
