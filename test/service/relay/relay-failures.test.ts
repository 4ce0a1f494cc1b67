import { expect, test } from 'vitest';
import { type Bus, listen, newExchange } from '../../support/bus.ts';
import type { TestDatabase } from '../../support/database.ts';
import { copies } from '../../support/facts.ts';
import { PUBLICATIONS } from '../../support/publications.ts';
import { connectTestDatabase, retry } from '../../support/relay.ts';
import { readMetric } from '../../support/requests.ts';
import { completed, deliver, failed, newJobId, progress } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';
import { OUTBOX } from '../../support/outbox.ts';
import { waitFor } from '../../support/waits.ts';

type Row = { id: string; state: string; attempts: number; last_error: string | null };

function outbox(database: TestDatabase): Promise<Row[]> {
  return database.query<Row>(
    `select concat_ws(':', job_id, status, progress_percentage) as id, state, attempts, last_error
     from ${OUTBOX} order by sequence`,
  );
}

function publications(database: TestDatabase, jobId: string): Promise<{ attempt: number; result: string }[]> {
  return database.query(
    `select p.attempt, p.result from ${PUBLICATIONS} p join events e on e.sequence = p.event_sequence
     where e.job_id = $1 order by e.sequence, p.attempt`,
    [jobId],
  );
}

/** A queue that takes one message and refuses every other, bound for `failed` events alone. */
async function addFullQueue(bus: Bus, exchange: string): Promise<{ makeRoom: () => Promise<void> }> {
  const { queue } = await bus.channel.assertQueue('', {
    exclusive: true,
    arguments: { 'x-max-length': 1, 'x-overflow': 'reject-publish' },
  });
  await bus.channel.bindQueue(queue, exchange, 'job.failed.#');
  bus.channel.publish(exchange, 'job.failed.filler', Buffer.from('{}'));
  await waitFor(async () => expect((await bus.channel.checkQueue(queue)).messageCount).toBe(1));
  return {
    makeRoom: async () => {
      await bus.channel.deleteQueue(queue);
    },
  };
}

test('an event that no queue is bound for is returned, kept and shown, and holds nobody up', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange, { bindings: ['job.completed.#'] });
  await using relay = await startTestService({ exchange });
  const [job, other] = [newJobId(), newJobId()];
  await deliver(relay.webhooks, progress(job, 10));
  await deliver(relay.webhooks, progress(job, 20));
  await deliver(relay.webhooks, completed(job));
  await deliver(relay.webhooks, completed(other));

  await bus.received(2);

  expect(bus.ids().toSorted()).toEqual([`default:${job}:completed`, `default:${other}:completed`].toSorted());
  await waitFor(async () => expect(await outbox(relay.database)).toHaveLength(2));
  expect(await outbox(relay.database)).toEqual([
    { id: `${job}:processing:10`, state: 'returned', attempts: 1, last_error: '312 NO_ROUTE' },
    { id: `${job}:processing:20`, state: 'returned', attempts: 1, last_error: '312 NO_ROUTE' },
  ]);
  await expect.poll(() => readMetric(relay.operators, 'tallyhook_outbox_returned')).toBe(2);
});

test('a returned event is not tried again by itself, and is sent once a queue is bound and it is put back', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange, { bindings: ['job.completed.#'] });
  await using relay = await startTestService({ exchange, env: { RELAY_POLL_MS: '10' } });
  await using connection = connectTestDatabase(relay.database);
  const job = newJobId();
  await deliver(relay.webhooks, progress(job, 10));
  await waitFor(async () => expect(await outbox(relay.database)).toMatchObject([{ state: 'returned' }]));

  // Twenty events later, each of which woke the relay, it is still that one attempt.
  for (let count = 0; count < 20; count++) await deliver(relay.webhooks, completed(newJobId()));
  await bus.received(20);
  expect(await publications(relay.database, job)).toEqual([{ attempt: 1, result: 'returned' }]);

  await bus.channel.bindQueue(bus.queue, exchange, 'job.progress.#');
  expect(await retry(connection.db, { id: `default:${job}:processing:10` })).toBe(1);
  await bus.received(21);
  await waitFor(async () => expect(await outbox(relay.database)).toEqual([]));
  expect(bus.ids().at(-1)).toBe(`default:${job}:processing:10`);
  expect(await publications(relay.database, job)).toEqual([
    { attempt: 1, result: 'returned' },
    { attempt: 1, result: 'confirmed' },
  ]);
});

test('a nacked event waits longer after each attempt, is parked after the last, and only its own job waits', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange, { bindings: ['job.progress.#', 'job.completed.#'] });
  const { makeRoom } = await addFullQueue(bus, exchange);
  await using relay = await startTestService({ exchange, env: { RELAY_MAX_ATTEMPTS: '3' } });
  await using connection = connectTestDatabase(relay.database);
  const [job, other] = [newJobId(), newJobId()];
  await deliver(relay.webhooks, progress(job, 10));
  await deliver(relay.webhooks, failed(job));
  await deliver(relay.webhooks, completed(job));
  await deliver(relay.webhooks, progress(other, 10));
  await deliver(relay.webhooks, completed(other));

  await bus.received(3);
  expect(bus.ids()).not.toContain(`default:${job}:completed`);
  await waitFor(
    async () =>
      expect(await outbox(relay.database)).toEqual([
        { id: `${job}:failed`, state: 'parked', attempts: 3, last_error: 'nacked by the broker' },
        { id: `${job}:completed`, state: 'pending', attempts: 0, last_error: null },
      ]),
    { timeout: 20_000, interval: 50 },
  );
  const waits = await relay.database.query<{ wait: number }>(
    `select extract(epoch from published_at - lag(published_at) over (order by attempt))::float8 as wait
     from publications where result = 'nacked' order by attempt`,
  );
  // 2 s and 8 s, each less a quarter at most.
  expect(waits[1]?.wait).toBeGreaterThan(1.5);
  expect(waits[2]?.wait).toBeGreaterThan(6);

  // While it is parked others flow, and later events of its own job wait.
  const third = newJobId();
  await deliver(relay.webhooks, completed(third));
  await deliver(relay.webhooks, progress(job, 20));
  await bus.received(4);
  expect(bus.ids().at(-1)).toBe(`default:${third}:completed`);
  await expect.poll(() => readMetric(relay.operators, 'tallyhook_outbox_parked')).toBe(1);

  await makeRoom();
  await bus.channel.bindQueue(bus.queue, exchange, 'job.failed.#');
  expect(await retry(connection.db, 'parked')).toBe(1);
  await bus.received(7);
  expect(bus.ids().filter((id) => id.includes(job))).toEqual([
    `default:${job}:processing:10`,
    `default:${job}:failed`,
    `default:${job}:completed`,
    `default:${job}:processing:20`,
  ]);
  expect([...copies(bus.messages).values()].every((count) => count === 1)).toBe(true);
  expect(relay.log.filter(({ msg }) => msg === 'event parked')).toHaveLength(1);
});

test('a nacked event is sent as soon as there is room again, with the events behind it after it', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange, { bindings: ['job.#'] });
  const { makeRoom } = await addFullQueue(bus, exchange);
  await using relay = await startTestService({ exchange });
  const job = newJobId();
  await deliver(relay.webhooks, failed(job));
  await deliver(relay.webhooks, completed(job));
  await waitFor(async () => expect((await outbox(relay.database))[0]?.attempts).toBeGreaterThan(0));

  await makeRoom();

  await waitFor(async () => expect(await outbox(relay.database)).toEqual([]), {
    timeout: 10_000,
    interval: 50,
  });
  // The queue with room got a copy at each attempt: what a nack says is that not every queue took it.
  const ids = bus.ids();
  expect(ids.filter((id) => id === `default:${job}:failed`).length).toBeLessThanOrEqual(3);
  expect(ids.indexOf(`default:${job}:completed`)).toBeGreaterThan(ids.lastIndexOf(`default:${job}:failed`));
});

test('a full queue costs the others five copies of an event at most, however long it stays full', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange, { bindings: ['job.failed.#'] });
  await addFullQueue(bus, exchange);
  await using relay = await startTestService({ exchange });
  const jobs = Array.from({ length: 22 }, newJobId);
  for (const job of jobs) await deliver(relay.webhooks, failed(job));

  await waitFor(
    async () => {
      // Instead of the waits.
      await relay.database.query(`update outbox_held set due_at = now() where state = 'pending'`);
      expect((await outbox(relay.database)).map(({ state }) => state)).toEqual(jobs.map(() => 'parked'));
    },
    { timeout: 20_000, interval: 50 },
  );

  await bus.received(jobs.length * 5 + 1);
  expect(bus.ids()).toHaveLength(jobs.length * 5 + 1); // the filler of the full queue, too
  expect((await outbox(relay.database)).map(({ attempts }) => attempts)).toEqual(jobs.map(() => 5));
});

test('guarantee 7: answers do not change while the exchange is of another type; it says so and waits', async () => {
  const exchange = newExchange();
  await using bus = await listen(newExchange());
  await bus.channel.assertExchange(exchange, 'fanout', { durable: true });
  try {
    await using relay = await startTestService({ exchange });
    const job = newJobId();

    expect(await deliver(relay.webhooks, completed(job))).toMatchObject({ status: 202 });
    await waitFor(() =>
      expect(
        relay.log.filter(
          ({ err }) => JSON.stringify(err ?? '').includes(exchange) && JSON.stringify(err).includes('topic'),
        ).length,
      ).toBeGreaterThan(0),
    );
    expect(await (await fetch(`${relay.operators}/readyz`)).json()).toMatchObject({
      ready: true,
      rabbitmq: 'disconnected',
    });
    expect(await readMetric(relay.operators, 'tallyhook_broker_connected')).toBe(0);
    expect(await deliver(relay.webhooks, completed(job))).toMatchObject({ status: 200 });

    // Mended by its operator: no restart of ours.
    await bus.channel.deleteExchange(exchange);
    await using mended = await listen(exchange);
    await using connection = connectTestDatabase(relay.database);
    await waitFor(
      async () => {
        // It may have been back before the queue was.
        await retry(connection.db, 'returned');
        expect(mended.ids()).toEqual([`default:${job}:completed`]);
      },
      { timeout: 15_000, interval: 100 },
    );
  } finally {
    await bus.channel.deleteExchange(exchange).catch(() => {});
  }
});

test('an exchange that is deleted under load comes back, and every event arrives', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using relay = await startTestService({ exchange });
  const jobs = Array.from({ length: 150 }, newJobId);

  const send = (some: string[]) => Promise.all(some.map((job) => deliver(relay.webhooks, completed(job))));
  const sending = send(jobs.slice(0, 100));
  await bus.received(1);
  await bus.channel.deleteExchange(exchange);
  const answers = [...(await sending), ...(await send(jobs.slice(100)))];
  expect(answers.filter(({ status }) => status !== 202)).toEqual([]);
  // Its bindings went with it: what was sent before a queue is bound again is returned.
  await using connection = connectTestDatabase(relay.database);
  await using again = await listen(exchange);

  await waitFor(
    async () => {
      await retry(connection.db, 'returned');
      const arrived = new Set([...bus.ids(), ...again.ids()]);
      expect(arrived.size).toBe(jobs.length);
      expect(await outbox(relay.database)).toEqual([]);
    },
    { timeout: 15_000, interval: 100 },
  );
});
