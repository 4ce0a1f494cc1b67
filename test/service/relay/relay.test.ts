import { expect, test } from 'vitest';
import { listen, newExchange } from '../../support/bus.ts';
import { createTestDatabase } from '../../support/database.ts';
import { altered, copies, eventIds, outOfOrder, untilOutboxEmpty } from '../../support/facts.ts';
import { lifeOf, post } from '../../support/load.ts';
import { PUBLICATIONS } from '../../support/publications.ts';
import { completed, deliver, newJobId, progress } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';

const LIVES = 60;

test('guarantee 4: without faults each event is on the bus exactly once, under the id that its answer gave', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using relay = await startTestService({ exchange });
  const notifications = Array.from({ length: LIVES }, () => lifeOf(newJobId())).flat();

  const answers = await Promise.all(
    // Each twice: a redelivery must not make a copy.
    [...notifications, ...notifications].map((notification) => post(relay.webhooks, notification)),
  );
  await untilOutboxEmpty(relay.database);
  const jobId = newJobId();
  await deliver(relay.webhooks, completed(jobId)); // whatever came before it is on the bus by now
  await waitFor(() => expect(bus.ids()).toContain(`default:${jobId}:completed`));

  const counts = copies(bus.messages);
  expect([...counts.values()].filter((count) => count !== 1)).toEqual([]);
  const answered = new Set(answers.map(({ eventId }) => String(eventId)));
  expect([...counts.keys()].toSorted()).toEqual([...answered, `default:${jobId}:completed`].toSorted());
  for (const { id, event } of bus.messages) expect(event['id']).toBe(id);
});

test('guarantee 5: first copies of a job are in the order of acceptance, from many senders to two replicas', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  await using first = await startTestService({ exchange, database });
  await using second = await startTestService({ exchange, database });
  const jobs = Array.from({ length: 40 }, newJobId);

  // The events of one job race each other to both replicas: only the ledger knows which came first.
  const answers = await Promise.all(
    jobs
      .flatMap(lifeOf)
      .toSorted(() => Math.random() - 0.5)
      .map((notification, index) => post((index % 2 ? first : second).webhooks, notification)),
  );

  expect(answers.filter(({ status }) => status !== 202)).toEqual([]);
  await bus.received(answers.length);
  expect(outOfOrder(bus.messages)).toEqual([]);
  expect(bus.ids().toSorted()).toEqual((await eventIds(database)).toSorted());
});

test('guarantee 5: a job whose sender waits for each answer arrives in the order in which it was sent', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  await using first = await startTestService({ exchange, database });
  await using second = await startTestService({ exchange, database });
  const jobs = Array.from({ length: 12 }, newJobId);

  await Promise.all(
    jobs.map(async (jobId, sender) => {
      for (const [index, notification] of lifeOf(jobId).entries()) {
        await deliver(((sender + index) % 2 ? first : second).webhooks, notification);
      }
    }),
  );

  await bus.received(jobs.length * 6);
  for (const jobId of jobs) {
    const statuses = bus.messages
      .filter(({ event }) => event['subject'] === jobId)
      .map(({ event }) => event.data['progress_percentage']);
    expect(statuses).toEqual([0, 20, 40, 60, 80, 100]);
  }
});

test('a confirmed entry leaves the outbox and its publication says so', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using relay = await startTestService({ exchange });
  const jobId = newJobId();
  await deliver(relay.webhooks, progress(jobId, 10));
  await deliver(relay.webhooks, completed(jobId));

  await bus.received(2);
  await untilOutboxEmpty(relay.database);

  const rows = await relay.database.query(
    `select e.status, p.result, p.attempt, p.detail, p.duration_ms >= 0 as timed
     from ${PUBLICATIONS} p join events e on e.sequence = p.event_sequence order by e.sequence`,
  );
  expect(rows).toEqual([
    { status: 'processing', result: 'confirmed', attempt: 1, detail: null, timed: true },
    { status: 'completed', result: 'confirmed', attempt: 1, detail: null, timed: true },
  ]);
});

test('entries that a former run left behind are published, with the same bytes as any copy before', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  const jobs = Array.from({ length: 5 }, newJobId);
  {
    await using relay = await startTestService({ exchange, database });
    for (const jobId of jobs) await deliver(relay.webhooks, completed(jobId));
    await bus.received(jobs.length);
    await untilOutboxEmpty(database);
  }
  // As if the marks of the first run had been lost with its crash.
  await database.query(
    `insert into outbox_batches (first, sequences, bytes, recorded_at)
     select sequence, array[sequence], 500, recorded_at from events`,
  );

  await using relay = await startTestService({ exchange, database });
  await bus.received(2 * jobs.length);

  expect(relay.database.name).toBe(database.name);
  expect([...copies(bus.messages).values()]).toEqual(jobs.map(() => 2));
  expect(altered(bus.messages)).toEqual([]);
});
