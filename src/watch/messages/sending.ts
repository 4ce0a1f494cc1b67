// Sends the due messages of incidents, while this replica holds the lease of the watch: one at a time to each channel, so that a dead
// or slow address delays no other channel, and at most one a second, which is what Slack takes. At least once, with the same id
// each time: a holder that dies between a request and its result leaves the message to the next one.

import { describeError } from '../../base/errors.ts';
import type { Parts } from '../../base/parts.ts';
import type { AlertsFile, Channel } from './channels-file.ts';
import type { createDueMessages, DueMessage, HeldLease } from './due.ts';
import { contentFor } from './forms.ts';
import type { Answer, Send } from './requests.ts';

const POLL_MS = 1_000;
/** After a look that failed: Postgres is away, and the log would have a line a second. */
const FAILED_LOOK_MS = 10_000;
const GIVE_UP_INTERVAL_MS = 60_000;
/** After a failure a channel pauses, doubled each time. A restart of a receiver takes seconds; a wrong address, until somebody sees it. */
const FIRST_PAUSE_MS = 2_000;
const MAX_PAUSE_MS = 15 * 60_000;

export type Sending = {
  readonly start: () => void;
  /** Begins no more requests. */
  readonly end: () => void;
  /** Resolves when none is under way. Never rejects. */
  readonly settled: () => Promise<void>;
};

type Pause = { failures: number; untilMs: number };

export function createSending({
  alerts,
  due,
  lease,
  send,
  metrics,
  now,
  log,
  random = Math.random,
}: Pick<Parts, 'metrics' | 'now' | 'log'> & {
  alerts: Pick<AlertsFile, 'current'>;
  due: ReturnType<typeof createDueMessages>;
  lease: HeldLease;
  send: Send;
  random?: () => number;
}): Sending {
  /** Of each channel with a request under way, by name: a file that was read again may have another address for it. */
  const underWay = new Map<string, Promise<void>>();
  /** Of those whose last request failed. A file that was read again has new channels, which are tried at once. */
  const pauses = new WeakMap<Channel, Pause>();
  let timer: NodeJS.Timeout | undefined;
  let looking = Promise.resolve();
  let givenUpAtMs = Number.NEGATIVE_INFINITY;
  let isEnded = false;

  const mayAct = (epoch: string | undefined): epoch is string =>
    !isEnded && epoch !== undefined && lease.isLeading() && lease.epoch() === epoch;

  const isReady = (channel: Channel) =>
    !underWay.has(channel.name) && (pauses.get(channel)?.untilMs ?? Number.NEGATIVE_INFINITY) <= now();

  async function look(): Promise<void> {
    const epoch = lease.epoch();
    if (!mayAct(epoch)) return;
    if (now() - givenUpAtMs >= GIVE_UP_INTERVAL_MS) await giveUp(epoch);
    const ready = new Map(
      alerts
        .current()
        .channels.filter(isReady)
        .map((channel) => [channel.name, channel]),
    );
    if (ready.size === 0) return;
    for (const message of await due.next([...ready.keys()])) {
      const channel = ready.get(message.channel);
      if (channel !== undefined && mayAct(epoch)) begin(channel, message, epoch);
    }
  }

  function begin(channel: Channel, message: DueMessage, epoch: string): void {
    const telling = tell(channel, message, epoch)
      .catch((error: unknown) => {
        pause(channel, undefined);
        log.warn(
          { ...fieldsOf(message), err: describeError(error) },
          'the state of a message is not written',
        );
      })
      .finally(() => underWay.delete(channel.name));
    underWay.set(channel.name, telling);
  }

  async function tell(channel: Channel, message: DueMessage, epoch: string): Promise<void> {
    if (!(await due.claim(message.id, epoch)) || !mayAct(epoch)) return;
    const answer = await send(channel.url, contentFor(channel, message, alerts.current().links));
    if (answer === undefined) return; // cut by the stop: whoever holds the lease next sends it again
    const fields = { ...fieldsOf(message), attempt: message.attempts + 1 };
    metrics.alertRequests.inc({ result: answer.isTaken ? 'sent' : 'failed' });
    if (answer.isTaken) {
      pauses.delete(channel);
      log.info(fields, 'a message of an incident is sent');
      await due.sent(message.id, epoch);
    } else {
      pause(channel, answer.retryAfterMs);
      log.warn({ ...fields, error: answer.error }, 'a message of an incident is not taken');
      await due.failed(message.id, epoch, answer.error);
    }
  }

  /** Less a random part of up to a quarter, so that channels of one receiver are not tried together. */
  function pause(channel: Channel, retryAfterMs: Extract<Answer, { isTaken: false }>['retryAfterMs']): void {
    const failures = (pauses.get(channel)?.failures ?? 0) + 1;
    const longestMs = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1));
    const pauseMs = Math.max(retryAfterMs ?? 0, longestMs * (1 - random() / 4));
    pauses.set(channel, { failures, untilMs: now() + pauseMs });
  }

  async function giveUp(epoch: string): Promise<void> {
    for (const { channel, count, error } of await due.giveUp(epoch)) {
      metrics.alertRequests.inc({ result: 'given_up' }, count);
      log.error(
        { channel, messages: count, error },
        'messages of incidents are given up: they were not taken for a day',
      );
    }
    givenUpAtMs = now();
  }

  async function run(): Promise<void> {
    let nextMs = POLL_MS;
    try {
      await look();
    } catch (error) {
      nextMs = FAILED_LOOK_MS;
      log.warn({ err: describeError(error) }, 'the messages of incidents cannot be read');
    }
    if (!isEnded) timer = setTimeout(start, nextMs);
  }

  function start(): void {
    looking = run();
  }

  return {
    start,
    end: () => {
      isEnded = true;
      clearTimeout(timer);
    },
    settled: async () => {
      await looking;
      await Promise.all(underWay.values());
    },
  };
}

const fieldsOf = ({ channel, incident, moment, condition, id }: DueMessage) => ({
  channel,
  incident,
  moment,
  condition,
  message: id,
});
