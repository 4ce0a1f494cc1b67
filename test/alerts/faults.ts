// A real fault for each alert, and how it is repaired. What an hour or a day would have to pass for is dated back in the ledger.

import { connect, type Socket } from 'node:net';
import type { ConditionName } from '../../src/base/conditions.ts';
import { setMemoryAlarm } from '../support/own-servers.ts';
import { completed, deliver, newJobId, progress } from '../support/sender.ts';
import { pause, until } from '../support/until.ts';
import { bindQueue, CONNECTIONS_PER_ADDRESS, EXCHANGE, QUEUE, SECRETS, type Stage } from './stage.ts';

export type Fault = {
  readonly name: string;
  /** All of these have to fire. */
  readonly fires: readonly ConditionName[];
  /** These may: they follow from the same fault, or from its repair, if it lasts long enough. */
  readonly may?: readonly ConditionName[];
  /** @returns how it is repaired */
  readonly strike: (stage: Stage) => Promise<() => PromiseLike<unknown>>;
};

const LIMIT = { limitMs: 30_000 };

const links = ({ replicas }: Stage, of: 'postgres' | 'rabbitmq') => replicas.map((replica) => replica[of]);

function cutOff(stage: Stage, of: 'postgres' | 'rabbitmq') {
  for (const link of links(stage, of)) {
    link.refuse();
    link.cut();
  }
  return async () => {
    for (const link of links(stage, of)) link.heal();
  };
}

async function send(stage: Stage, content: Parameters<typeof deliver>[1], secret?: string, source?: string) {
  const url = stage.replicas[0].webhooks + (source === undefined ? '' : `/${source}`);
  return deliver(url, content, secret === undefined ? {} : { secret });
}

const retryReturned = (stage: Stage) => stage.ask('/outbox/retry', { filter: { state: 'returned' } });

/** An event that no queue receives. @returns its id */
async function makeReturned(stage: Stage): Promise<string> {
  await stage.withChannel((channel) => channel.unbindQueue(QUEUE, EXCHANGE, 'job.#'));
  const { body } = await send(stage, completed(newJobId()));
  return until(
    'an event is returned',
    async () => {
      const { items } = (await stage.ask('/outbox?state=returned')) as { items: { event_id: string }[] };
      return items.find(({ event_id }) => event_id === body['event_id'])?.event_id ?? items[0]?.event_id;
    },
    LIMIT,
  );
}

/** Of the first replica. */
async function readMetrics({ replicas, scraperToken }: Stage): Promise<string> {
  const headers = { Authorization: `Bearer ${scraperToken}` };
  return (await fetch(`http://${replicas[0].operators}/metrics`, { headers })).text();
}

/** Rows as those of a source that has delivered each hour until `agoS` seconds ago. */
const DATED_BACK = `
with last as (update secret_matches set last_matched_at = now() - make_interval(secs => $1) where source = 'steady')
insert into deliveries
select (jsonb_populate_record(null::deliveries, d.row || jsonb_build_object('id', gen_random_uuid(),
  'received_at', now() - make_interval(secs => $1 + 60, hours => hour)))).*
from (select to_jsonb(t) as row from deliveries t where source = 'steady' order by received_at desc limit 1) d,
  generate_series(0, 21) as hour`;

const FUTURE_PARTITIONS = `
select c.relname::text as name from pg_inherits join pg_class c on c.oid = inhrelid
where inhparent = 'deliveries'::regclass order by c.relname desc limit 5`;

function openConnections(port: number, count: number): Socket[] {
  return Array.from({ length: count }, () => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.9' });
    socket.on('error', () => {});
    socket.write('POST /webhooks HTTP/1.1\r\n');
    return socket;
  });
}

export const FAULTS: readonly Fault[] = [
  {
    name: 'RabbitMQ cannot be reached',
    fires: ['broker-away', 'outbox-lag'],
    strike: async (stage) => cutOff(stage, 'rabbitmq'),
  },
  {
    name: 'RabbitMQ blocks for want of memory',
    fires: ['broker-away', 'outbox-lag', 'disk-full'],
    strike: async ({ broker }) => {
      await setMemoryAlarm(broker, true);
      return () => setMemoryAlarm(broker, false);
    },
  },
  {
    name: 'Postgres cannot be reached',
    fires: ['postgres-away'],
    strike: async (stage) => cutOff(stage, 'postgres'),
  },
  {
    name: 'the disk of Postgres is full',
    fires: ['disk-full'],
    may: ['postgres-away', 'no-leader'],
    strike: async ({ disk, postgres }) => {
      if (disk === undefined) throw new Error('there is no disk to fill');
      await disk.fill();
      return async () => {
        disk.free();
        // It ends by itself when there is no room for its log.
        await postgres.start();
      };
    },
  },
  {
    name: 'both replicas are stopped',
    fires: ['no-leader'],
    strike: async ({ replicas }) => {
      for (const replica of replicas) await replica.stop();
      return async () => {
        for (const replica of replicas) await replica.start();
      };
    },
  },
  {
    name: 'the row of the lease is locked',
    fires: ['no-leader'],
    may: ['outbox-lag'],
    strike: async ({ hold }) => {
      const held = await hold("select from relay_lease where name = 'outbox' for update");
      return () => held[Symbol.asyncDispose]();
    },
  },
  {
    name: 'partitions are dropped',
    fires: ['partitions-missing'],
    strike: async ({ query }) => {
      for (const { name } of await query<{ name: string }>(FUTURE_PARTITIONS))
        await query(`drop table ${name}`);
      return () =>
        query(
          "select make_partition('deliveries', (now() at time zone 'UTC')::date + n) from generate_series(0, 7) n",
        );
    },
  },
  {
    name: 'no queue is bound',
    fires: ['returned'],
    strike: async (stage) => {
      await makeReturned(stage);
      return async () => {
        await stage.withChannel(bindQueue);
        await retryReturned(stage);
      };
    },
  },
  {
    name: 'an event is parked',
    fires: ['parked'],
    strike: async (stage) => {
      const id = await makeReturned(stage);
      await stage.withChannel(bindQueue);
      await stage.ask('/outbox/park', { ids: [id] });
      await retryReturned(stage);
      return () => stage.ask('/outbox/discard', { ids: [id] });
    },
  },
  {
    name: 'an unknown status',
    fires: ['quarantine'],
    strike: async (stage) => {
      await send(stage, progress(newJobId(), 1, { status: 'exploded' }));
      return () => stage.ask('/quarantine/discard', { filter: { status: 'exploded' }, note: 'tried' });
    },
  },
  {
    name: 'one event with two contents',
    fires: ['conflicts'],
    strike: async (stage) => {
      const jobId = newJobId();
      await send(stage, completed(jobId));
      await send(stage, completed(jobId, { cost_cents: 1 }));
      return () =>
        stage.query(
          "update deliveries set received_at = received_at - interval '1 hour' where outcome = 'conflict'",
        );
    },
  },
  {
    name: 'a job without an end',
    fires: ['stuck-jobs'],
    strike: async (stage) => {
      const jobId = newJobId();
      await send(stage, progress(jobId, 10));
      await stage.query("update jobs set first_seen_at = now() - interval '2 hours' where job_id = $1", [
        jobId,
      ]);
      return () => send(stage, completed(jobId));
    },
  },
  {
    name: 'a source is silent',
    fires: ['source-silent'],
    strike: async (stage) => {
      await send(stage, completed(newJobId()), SECRETS.steady, 'steady');
      await until(
        'its secret is on record',
        async () =>
          (await stage.query("select from secret_matches where source = 'steady'")).length > 0 || undefined,
        LIMIT,
      );
      await stage.query(DATED_BACK, [2 * 3_600]);
      return async () => {
        await send(stage, completed(newJobId()), SECRETS.steady, 'steady');
        // It would be silent again.
        await stage.query(
          "delete from deliveries where source = 'steady' and received_at < now() - interval '1 hour'",
        );
      };
    },
  },
  {
    name: 'a wrong secret',
    fires: ['unauthorized-storm'],
    strike: async (stage) => {
      const wrong = () => send(stage, completed(newJobId()), 'not-the-secret-of-the-default-source');
      for (let round = 0; round < 8; round++) await Promise.all(Array.from({ length: 20 }, wrong));
      // The counters of a source have to be seen before and after.
      await pause(2_000);
      for (let round = 0; round < 8; round++) await Promise.all(Array.from({ length: 20 }, wrong));
      return async () => {};
    },
  },
  {
    name: 'a secret after its time',
    fires: ['secret-overdue'],
    strike: async (stage) => {
      await send(stage, completed(newJobId()), SECRETS.late, 'late');
      return async () => {};
    },
  },
  {
    name: 'sessions with Postgres get no answer',
    fires: ['starved-pool'],
    may: ['postgres-away'],
    strike: async (stage) => {
      const [first] = stage.replicas;
      // A session opens, and its first statement is not answered, as behind a pooler that is too small.
      first.postgres.failAfterBytes(SESSION_BYTES, 'stall');
      const asking = Array.from({ length: 8 }, () => stage.ask('/deliveries').catch(() => {}));
      await Promise.all(asking);
      return async () => first.postgres.heal();
    },
  },
  {
    name: 'too many connections',
    fires: ['connections-dropped'],
    strike: async ({ replicas }) => {
      const sockets = openConnections(replicas[0].port, 2 * CONNECTIONS_PER_ADDRESS);
      return async () => {
        for (const socket of sockets) socket.destroy();
      };
    },
  },
  {
    name: 'nobody reads the log',
    fires: ['log-dropped'],
    strike: async (stage) => {
      const [first] = stage.replicas;
      first.stallLog(true);
      // Long ids, since each is in its line twice.
      const long = () => send(stage, completed(`${newJobId()}_${'x'.repeat(200)}`));
      await until(
        'lines are dropped',
        async () => {
          await Promise.all(Array.from({ length: 50 }, long));
          return /^tallyhook_log_lines_dropped_total [1-9]/m.test(await readMetrics(stage)) || undefined;
        },
        { limitMs: 60_000, pollMs: 0 },
      );
      return async () => first.stallLog(false);
    },
  },
];

/** Of Postgres, until it is ready for the first statement: what follows its log-in is some 600. */
const SESSION_BYTES = 700;
