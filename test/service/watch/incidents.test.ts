// Incidents in real ledgers, with two replicas: what lasts is one row, whoever has the lease.

import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createLease } from '../../../src/ledger/upkeep/lease.ts';
import { createTestLog } from '../../support/test-log.ts';
import { keepUp } from '../../../src/ledger/upkeep/upkeep.ts';
import { type Begun, type Judged } from '../../../src/watch/judge.ts';
import { readDecisions, remember, writeIncidents } from '../../../src/watch/incidents.ts';
import { amqpUrl, listen, newExchange } from '../../support/bus.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { operators } from '../../support/operators.ts';
import { orderOne } from '../../support/orders.ts';
import { startProxy } from '../../support/proxy.ts';
import { AT_ONCE, QUICK } from '../../support/quick-watch.ts';
import { connectTestDatabase } from '../../support/relay.ts';
import { readMetric } from '../../support/requests.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';

type Row = {
  readonly id: string;
  readonly condition: string;
  readonly severity: string;
  readonly ended: boolean;
  readonly lasted: number | null;
  readonly waited: number;
  readonly decided: string[];
};

const incidentsOf = (database: TestDatabase, condition: string) =>
  database.query<Row>(
    `select id, condition, severity, ended_at is not null as ended, extract(epoch from ended_at - began_at)::float8 as lasted,
       events_waited::int as waited, decided_by as decided
     from incidents where condition = $1 order by began_at`,
    [condition],
  );

/** The one incident of this condition, once it is as it should be. */
const untilOne = (database: TestDatabase, condition: string, fields: Partial<Row>, timeout = 20_000) =>
  waitFor(
    async () => {
      const rows = await incidentsOf(database, condition);
      expect(rows).toMatchObject([fields]);
      return rows[0] as Row;
    },
    { timeout },
  );

const startTwo = async (options: Parameters<typeof startTestService>[0] & { database: TestDatabase }) => {
  const [first, second] = await Promise.all([startTestService(options), startTestService(options)]);
  return {
    first,
    second,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([first.service.stop(), second.service.stop()]);
    },
  };
};

const openOn = ({ operators: url }: TestService) =>
  readMetric(url, 'tallyhook_incidents_open{severity="critical"}');

describe('with two replicas', () => {
  test('a broker that is away, back for a moment and away again is one incident with what waited', async () => {
    await using database = await createTestDatabase();
    await using proxy = await startProxy(amqpUrl(), { defaultPort: 5672 });
    const exchange = newExchange();
    await using bus = await listen(exchange); // or the event would be returned
    await using pair = await startTwo({
      database,
      exchange,
      env: { AMQP_URL: proxy.url },
      watchTiming: QUICK,
    });
    const { first } = pair;
    const untilBroker = (connected: number) =>
      waitFor(async () =>
        expect(await readMetric(first.operators, 'tallyhook_broker_connected')).toBe(connected),
      );
    await untilBroker(1);

    proxy.refuse();
    proxy.cut();
    await deliver(first.webhooks, completed(newJobId()));
    const { id } = await untilOne(database, 'broker-away', { ended: false, severity: 'critical' });
    await waitFor(async () => expect(await openOn(first)).toBeGreaterThan(0));
    await untilOne(database, 'broker-away', { waited: 1 });
    proxy.heal();
    await bus.received(1);
    await untilBroker(1);
    proxy.refuse();
    proxy.cut();
    await untilBroker(0);
    proxy.heal();

    const ended = await untilOne(database, 'broker-away', { id, ended: true, waited: 1 });
    expect(ended.lasted).toBeGreaterThan(1);
    await waitFor(async () => expect(await openOn(pair.second)).toBe(0), { timeout: 20_000 });
    // Each of them would have had its own.
    expect(await database.query('select from incidents where ended_at is null')).toEqual([]);
  });
});

const startAfter = async (database: TestDatabase, since: string) => {
  await database.query(
    `insert into relay_lease (name, holder, epoch, expires_at, since)
     values ('outbox', gen_random_uuid(), 7, clock_timestamp() - interval '10 minutes', ${since})`,
  );
  const service = await startTestService({ database, watchTiming: { ...QUICK, scale: 1 } });
  await waitFor(async () =>
    expect(
      await database.query(`select from relay_lease o join relay_lease w on w.name = 'watch'
        where o.name = 'outbox' and o.since is not null and w.memory is not null`),
    ).toHaveLength(1),
  );
  return service;
};

const begun = (id: string): Begun => ({
  id,
  now: {
    name: 'conflicts',
    subject: '',
    severity: 'warning',
    isSo: true,
    summary: '1 delivery has contradicted an event in the last hour.',
    value: 1,
    was: { agoS: 0, forS: 0 },
  },
  beganMs: Date.now() - 1_000,
  waited: 0,
});

test('a delivery in quarantine is an incident that ends with its release, and names who released it', async () => {
  await using service = await startTestService({ watchTiming: AT_ONCE });
  const { database } = service;
  const job = completed(newJobId());
  await deliver(service.webhooks, { ...job, status: 'not-known-yet' });
  await untilOne(database, 'quarantine', { ended: false, severity: 'warning', decided: [] });
  const [row] = await database.query<{ id: string }>(
    `update deliveries set body = convert_to($1, 'UTF8'), status = 'completed' where job_id = $2 returning id`,
    [JSON.stringify(job), job.job_id],
  );

  const api = await operators(service, { role: 'operator', name: 'Ada' });
  await orderOne(api, 'quarantine/release', row?.id ?? '');

  const ended = await untilOne(database, 'quarantine', { ended: true, decided: ['Ada'] });
  expect(ended.lasted).toBeGreaterThan(0);
});

describe('a time without a leader that nobody saw', () => {
  test('is an incident if the lease ran out', async () => {
    await using database = await createTestDatabase();
    await using service = await startAfter(database, `clock_timestamp() - interval '1 day'`);
    await untilOne(database, 'no-leader', { ended: false });
    expect(await openOn(service)).toBe(1);
    expect(
      await database.query(
        `select from incidents where began_at between now() - interval '11 minutes' and now() - interval '9 minutes'`,
      ),
    ).toHaveLength(1);
  });

  test('is none if the lease was given up, as by replicas that are stopped in order', async () => {
    await using database = await createTestDatabase();
    await using service = await startAfter(database, 'null');
    // Some looks later, too.
    const memory = async () =>
      (await database.query<{ xmin: string }>(`select xmin::text from relay_lease where name = 'watch'`))[0]
        ?.xmin;
    const before = await memory();
    await waitFor(async () => expect(await memory()).not.toBe(before));
    expect(await incidentsOf(database, 'no-leader')).toEqual([]);
    expect(await openOn(service)).toBe(0);
  });
});

const judged = (id: string): Judged => ({
  memory: {
    seen: [{ name: 'conflicts', subject: '', firstMs: 1, lastMs: 2, waited: 0, incident: id }],
  },
  begun: [begun(id)],
  known: [],
});

describe('what is written', () => {
  const channels = [
    { name: 'on-call', takes: () => true },
    { name: 'pager', takes: (severity: string) => severity === 'critical' },
  ];
  const prepare = async () => {
    const database = await createTestDatabase();
    const connection = connectTestDatabase(database);
    const lease = createLease({
      name: 'watch',
      connection,
      holder: randomUUID(),
      leaseMs: 60_000,
      now: () => performance.now(),
      log: createTestLog().log,
      mayLead: () => true,
    });
    await lease.attempt();
    const write = (
      what: Judged,
      epoch = lease.epoch() ?? '',
      { pending = 0, oldestS = null as number | null } = {},
    ) =>
      writeIncidents(connection, what, {
        holder: lease.holder,
        epoch,
        decided: new Map(),
        channels,
        looks: {
          outbox: {
            counts: { pending, returned: 0, parked: 3 },
            copies: 0,
            isComplete: true,
            oldestPendingAt: null,
            oldestPendingS: oldestS,
          },
          quarantined: { count: 1_000, isExact: false },
        },
      });

    return {
      database,
      connection,
      lease,
      write,
      [Symbol.asyncDispose]: async () => {
        await connection.close();
        await database[Symbol.asyncDispose]();
      },
    };
  };

  test('says how it is now while it goes on, and at its end how it was last', async () => {
    await using stage = await prepare();
    const { database, write } = stage;
    const id = randomUUID();
    await write(judged(id));
    const [seen] = judged(id).memory.seen;
    const say = (summary: string | null, endedMs: number | null = null) =>
      write({
        memory: { seen: [] },
        begun: [],
        known: [{ ...seen, incident: id, endedMs, summary } as Judged['known'][number]],
      });
    const said = async () =>
      (await database.query<{ summary: string }>('select summary from incidents where id = $1', [id]))[0]
        ?.summary;
    await say('10 deliveries contradict.');
    expect(await said()).toBe('10 deliveries contradict.');
    await say(null, Date.now());
    expect(await said()).toBe('10 deliveries contradict.');
  });

  test('has the most that waited in each minute', async () => {
    await using stage = await prepare();
    const { database, write, lease } = stage;
    const nothing: Judged = { memory: { seen: [] }, begun: [], known: [] };
    await write(nothing, lease.epoch(), { pending: 7, oldestS: 2.5 });
    await write(nothing, lease.epoch(), { pending: 2, oldestS: 4 });
    await write(nothing, '0', { pending: 99 });

    const rows = await database.query<{ pending: number; oldest_pending_s: number; minute: Date }>(
      'select * from waits order by minute',
    );
    // The minute may have ended between them.
    expect(Math.max(...rows.map(({ pending }) => pending))).toBe(7);
    expect(Math.max(...rows.map(({ oldest_pending_s: s }) => s))).toBe(4);
    expect(rows[0]).toMatchObject({ returned: 0, parked: 3, quarantined: 1_000 });
    expect(rows.map(({ minute }) => minute.getTime() % 60_000)).toEqual(rows.map(() => 0));
  });

  test('goes with one message for each channel that takes it, and another replica goes on from there', async () => {
    await using stage = await prepare();
    const { database, connection, lease, write } = stage;
    const id = randomUUID();
    expect(await write(judged(id))).toBe(true);
    const messages = () =>
      database.query('select incident_id, moment, channel from incident_messages order by moment');
    expect(await messages()).toEqual([{ incident_id: id, moment: 'begin', channel: 'on-call' }]);

    const { memory } = await remember(connection, randomUUID());
    expect(memory).toEqual(judged(id).memory);
    const [seen] = memory.seen;
    const ended = { ...seen, incident: id, endedMs: Date.now(), waited: 5 };
    const end: Judged = { memory: { seen: [] }, begun: [], known: [ended as Judged['known'][number]] };
    expect(await write(end)).toBe(true);
    expect(await write(end)).toBe(true);
    expect(await messages()).toHaveLength(2);
    expect(await incidentsOf(database, 'conflicts')).toMatchObject([{ id, ended: true, waited: 5 }]);
    expect(lease.isLeading()).toBe(true);
  });

  test('is nothing without the lease: under an older epoch, or once it has run out', async () => {
    await using stage = await prepare();
    const { database, lease, write } = stage;
    expect(await write(judged(randomUUID()), '0')).toBe(false);
    await database.query(`update relay_lease set expires_at = clock_timestamp() - interval '1 ms'`);
    expect(lease.isLeading()).toBe(true); // by its own clock, as one that was frozen may think for a moment
    expect(await write(judged(randomUUID()))).toBe(false);
    await database.query(
      `update relay_lease set holder = gen_random_uuid(), epoch = 2, expires_at = now() + interval '1 minute'`,
    );
    expect(await write(judged(randomUUID()))).toBe(false);
    expect(await database.query('select from incidents')).toEqual([]);
    expect(await database.query('select from incident_messages')).toEqual([]);
    expect(await database.query('select memory from relay_lease')).toEqual([{ memory: null }]);
  });

  test('goes on without what the one before remembered', async () => {
    await using stage = await prepare();
    const { database, connection, write } = stage;
    const id = randomUUID();
    await write(judged(id));
    await database.query(`update relay_lease set memory = '{"of": "tomorrow"}'`);
    const { memory } = await remember(connection, randomUUID());
    expect(memory.seen).toMatchObject([{ name: 'conflicts', incident: id }]);
    expect(await readDecisions(connection, [])).toEqual(new Map());
  });

  test('is deleted with its messages when it ended before the retention, and stays while it goes on', async () => {
    await using stage = await prepare();
    const { database, connection, write } = stage;
    const [old, open] = [randomUUID(), randomUUID()];
    await write(judged(old));
    await database.query(
      `update incidents set began_at = now() - interval '40 days', ended_at = now() - interval '31 days'`,
    );
    await write(judged(open));
    await database.query(`update incidents set began_at = now() - interval '40 days' where ended_at is null`);
    await keepUp(connection, { retentionDays: 30, log: createTestLog().log });
    expect(await database.query('select id from incidents')).toEqual([{ id: open }]);
    expect(await database.query('select incident_id from incident_messages')).toEqual([
      { incident_id: open },
    ]);
  });
});
