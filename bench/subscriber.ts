// An independent subscriber in a process of its own: binds its own durable queue, counts the first copies of the run's events
// and records when each came. An event counts as delivered only if it came here.

import { writeFileSync } from 'node:fs';
import { connect, type ConsumeMessage } from 'amqplib';
import { monotonicUs } from './clock.ts';
import { connectToBenchmark } from './control.ts';
import { createTimes } from './load/by-number.ts';
import { numberOf, SEEDED_RUN } from './load/notifications.ts';

export type SubscriberPlan = {
  readonly amqpUrl: string;
  readonly exchange: string;
  /** The exchange is not deleted. */
  readonly isShared: boolean;
  readonly queue: string;
  readonly queueType: 'quorum' | 'classic';
  readonly run: string;
  /** The times of first receipt are written to it: 8-byte floats in microseconds, by number; 0 for none. */
  readonly receiveTimesFile: string;
};

export type SubscriberCount = {
  /** First copies of the run's events. */
  readonly received: number;
  readonly copies: number;
  /** Messages of the seeded backlog, copies included. */
  readonly seeded: number;
  /** Other messages: the warm-up's. */
  readonly others: number;
};

/** Many, acknowledged together, so that the subscriber keeps up. */
const PREFETCH = 2_000;
const ACK_EVERY = 200;
const ACK_EVERY_MS = 10;
const COUNT_EVERY_MS = 50;

const control = await connectToBenchmark();
control.on('plan', (plan) => void listen(plan as SubscriberPlan));

async function listen(plan: SubscriberPlan): Promise<void> {
  const count = { received: 0, copies: 0, seeded: 0, others: 0 };
  const times = createTimes();
  let highest = -1;
  let unacknowledged: ConsumeMessage | undefined;
  let inHand = 0;

  const connection = await connect(plan.amqpUrl, { noDelay: true });
  const channel = await connection.createChannel();
  await channel.assertExchange(plan.exchange, 'topic', { durable: true });
  await channel.assertQueue(plan.queue, { durable: true, arguments: { 'x-queue-type': plan.queueType } });
  await channel.bindQueue(plan.queue, plan.exchange, 'job.#');
  await channel.prefetch(PREFETCH);

  function acknowledge(): void {
    if (unacknowledged !== undefined) channel.ack(unacknowledged, true);
    unacknowledged = undefined;
    inHand = 0;
  }

  function note(id: string): void {
    const number = numberOf(plan.run, id);
    if (number === undefined) {
      if (numberOf(SEEDED_RUN, id) === undefined) count.others += 1;
      else count.seeded += 1;
      return;
    }
    if (times.markFirst(number, monotonicUs())) {
      count.received += 1;
      highest = Math.max(highest, number);
    } else count.copies += 1;
  }

  const { consumerTag } = await channel.consume(plan.queue, (received) => {
    if (received === null) throw new Error('the queue is gone');
    note(String(received.properties.messageId));
    unacknowledged = received;
    if (++inHand >= ACK_EVERY) acknowledge();
  });
  setInterval(acknowledge, ACK_EVERY_MS);
  setInterval(() => control.tell('count', count), COUNT_EVERY_MS);
  control.on('write', () => {
    writeFileSync(plan.receiveTimesFile, times.bytes(highest + 1));
    control.tell('written');
  });
  control.on('remove', () => void remove());

  async function remove(): Promise<void> {
    acknowledge();
    // Cancel first: deleting the queue would cancel the consumer from the broker's side, which counts as an error.
    await channel.cancel(consumerTag);
    await channel.deleteQueue(plan.queue);
    if (!plan.isShared) await channel.deleteExchange(plan.exchange);
    control.tell('removed');
  }

  control.tell('bound');
}
