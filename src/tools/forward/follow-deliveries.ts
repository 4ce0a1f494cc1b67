// The deliveries that arrive from now on, oldest first, each once. The live stream tells them soon, but sends nothing again: what
// it left out, and what came while the connection was lost, is read from the list. Waits for a service that is away.

import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSeen } from '../../base/collections/recent-ids.ts';
import { AnswerError, NoAnswerError } from '../../base/errors.ts';
import { parseIfJson } from '../../base/json/json.ts';
import type { Items, ListQuery, OperatorsClient } from '../../operators/client/index.ts';
import { counted } from '../../terminal/readable.ts';

export type Delivery = Items['deliveries'];

export type Followed = {
  /** Throws if the API refuses to go on. Ends by throwing, too, when the signal is aborted. */
  readonly deliveries: AsyncIterable<Delivery>;
  /** How many have arrived and were not taken yet. */
  readonly waiting: () => number;
};

/** Some 1 KB each. Those beyond it are left out, and that is reported. */
const WAITING_MAX = 10_000;
/** Above what waits and what the list shows twice. */
const SEEN_MAX = 2 * WAITING_MAX;
/** A delivery is in the list after its commit, with the time when it arrived. The service gives up on a commit before this. */
const LATE_MS = 15_000;
const RETRY_MS = 1_000;
const TOO_MANY_REQUESTS = 429;
const SERVER_ERROR = 500;

export function followDeliveries(options: {
  client: Pick<OperatorsClient, 'each' | 'openLive'>;
  /** What both the list and the live stream can select by. */
  query: Pick<ListQuery<'deliveries'>, 'source' | 'outcome' | 'kind' | 'job_id'>;
  signal: AbortSignal;
  /** Gets sentences for the user. The first one is sent when nothing is missed any more. */
  report: (sentence: string) => void;
}): Followed {
  const { client, query, signal, report } = options;
  const queue = new Readable({ objectMode: true, read: () => {} });
  const isSeen = createSeen(SEEN_MAX);
  let startedAfter = '';
  let newest = '';
  let leftOut = 0;

  function take(delivery: Delivery): void {
    if (delivery.received_at <= startedAfter || isSeen(delivery.id)) return;
    if (delivery.received_at > newest) newest = delivery.received_at;
    if (queue.readableLength < WAITING_MAX) {
      if (leftOut > 0) report(`${counted(leftOut, 'delivery')} left out: too many were waiting`);
      leftOut = 0;
      queue.push(delivery);
      return;
    }
    leftOut += 1;
    if (leftOut > 1) return;
    report(`${counted(WAITING_MAX, 'delivery')} wait: more are left out, from ${delivery.received_at} on`);
  }

  async function newestInList(): Promise<string> {
    for await (const { received_at } of client.each('deliveries', query, { max: 1, signal }))
      return received_at;
    return '';
  }

  async function catchUp(): Promise<void> {
    const from = newest === '' ? undefined : new Date(Date.parse(newest) - LATE_MS).toISOString();
    const found: Delivery[] = [];
    const listed = client.each('deliveries', { ...query, from }, { max: WAITING_MAX, signal });
    for await (const delivery of listed) found.push(delivery);
    const oldest = found.at(-1);
    if (oldest !== undefined && found.length === WAITING_MAX && oldest.received_at > newest)
      report(
        `more than ${counted(WAITING_MAX, 'delivery')} arrived meanwhile: those before ${oldest.received_at} are left out`,
      );
    for (const delivery of found.toReversed()) take(delivery);
  }

  /** One connection. Returns when the service ends it. */
  async function listen(opened: () => void): Promise<void> {
    const connection = new AbortController();
    try {
      const live = { ...query, events: 'deliveries' };
      const events = await client.openLive(live, { signal: AbortSignal.any([signal, connection.signal]) });
      await catchUp();
      opened();
      for await (const { event, data } of events) {
        if (event === 'delivery') take(parseIfJson(data) as Delivery);
        else if (event === 'gap') await catchUp();
      }
    } finally {
      connection.abort();
    }
  }

  async function run(): Promise<void> {
    startedAfter = newest = await newestInList();
    const connection = { wasOpened: false, isLost: false };
    const opened = () => {
      report(connection.isLost ? 'connected again: what arrived meanwhile is forwarded now' : 'listening');
      Object.assign(connection, { wasOpened: true, isLost: false });
    };
    while (!signal.aborted) {
      try {
        await listen(opened);
      } catch (error) {
        if (!connection.wasOpened || !isPassing(error)) throw error;
      }
      if (signal.aborted) return;
      if (!connection.isLost) report('the connection to the service was lost: connecting again');
      connection.isLost = true;
      await sleep(RETRY_MS, undefined, { signal });
    }
  }

  signal.addEventListener('abort', () => queue.destroy());
  run().catch((error: unknown) => queue.destroy(error as Error));
  return { deliveries: queue as AsyncIterable<Delivery>, waiting: () => queue.readableLength };
}

/** Repeats a call of the API as long as the service is away or has no room. @throws what it throws otherwise */
export async function untilAnswered<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (signal.aborted || !isPassing(error)) throw error;
      await sleep(RETRY_MS, undefined, { signal });
    }
  }
}

function isPassing(error: unknown): boolean {
  if (error instanceof AnswerError)
    return error.httpStatus === TOO_MANY_REQUESTS || error.httpStatus >= SERVER_ERROR;
  return error instanceof NoAnswerError;
}
