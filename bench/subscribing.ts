// The benchmark's side of the independent subscriber: starts it, and asks it what came and when. Each run has its own, with its
// own exchange and queue.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Stage } from './stage.ts';
import type { SubscriberCount, SubscriberPlan } from './subscriber.ts';

export type QueueType = SubscriberPlan['queueType'];

export type Subscriber = {
  readonly pid: number;
  readonly run: string;
  readonly count: () => SubscriberCount;
  /** Resolves when so many came. @throws Error if nothing comes for a while */
  readonly until: (what: 'received' | 'others' | 'seeded', many: number) => Promise<void>;
  /** Times of the first receipt, by number; 0 for none. */
  readonly times: () => Promise<Float64Array>;
  /** Also deletes its queue, and its exchange unless that is shared. */
  readonly end: () => Promise<void>;
};

const BIND_TIMEOUT_MS = 15_000;
const WRITE_TIMEOUT_MS = 30_000;
/** A relay that publishes nothing for so long is stuck. */
const STUCK_MS = 30_000;
const POLL_MS = 20;

/** Letters and digits, since it is part of job ids and of names on the broker. */
export function newRun(): string {
  return `r${randomBytes(4).toString('hex')}`;
}

/** Each run has its own, so that it sees no other run's events. */
export const exchangeOf = (run: string) => `bench.${run}`;

/** @param shared an exchange that others use, too, instead of one of its own. It is kept. */
export async function startSubscriber(
  stage: Stage,
  run: string,
  queueType: QueueType,
  shared?: string,
): Promise<Subscriber> {
  const part = await stage.parts.start('subscriber.ts');
  const receiveTimesFile = join(stage.folder, `${run}.received`);
  const plan: SubscriberPlan = {
    amqpUrl: stage.rabbitmq.url,
    exchange: shared ?? exchangeOf(run),
    isShared: shared !== undefined,
    queue: exchangeOf(run),
    queueType,
    run,
    receiveTimesFile,
  };
  let count: SubscriberCount = { received: 0, copies: 0, seeded: 0, others: 0 };
  part.on('count', (value) => (count = value as SubscriberCount));
  part.tell('plan', plan);
  await part.next('bound', BIND_TIMEOUT_MS);

  async function until(what: 'received' | 'others' | 'seeded', many: number): Promise<void> {
    let last = { seen: -1, atMs: performance.now() };
    while (count[what] < many) {
      const seen = count.received + count.others + count.seeded;
      if (seen !== last.seen) last = { seen, atMs: performance.now() };
      if (performance.now() - last.atMs > STUCK_MS)
        throw new Error(`${many - count[what]} of ${many} events are not on the bus`);
      await sleep(POLL_MS);
    }
  }

  async function times(): Promise<Float64Array> {
    const written = part.next('written', WRITE_TIMEOUT_MS);
    part.tell('write');
    await written;
    return readTimes(receiveTimesFile);
  }

  async function end(): Promise<void> {
    const removed = part.next('removed', WRITE_TIMEOUT_MS);
    part.tell('remove');
    await removed;
    await part.end();
  }

  return { pid: part.pid, run, count: () => count, until, times, end };
}

export function readTimes(file: string): Float64Array {
  const bytes = readFileSync(file);
  return new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}
