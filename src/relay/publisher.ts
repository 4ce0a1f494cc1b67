// Publishes to RabbitMQ and reports the result of each message: confirmed, returned, nacked or failed. `failed` means unknown: the
// broker may have the message. This file never publishes again, and queues nothing while the broker is down: the relay does both.
//
// Usually all messages go by one confirm channel. Two kinds go by channels of their own, so that they cannot hold up the others:
// messages for one queue, since RabbitMQ closes the channel if our account may not publish to queues; and those whose route is slow
// (slow-routes.ts). A watchdog finds confirms that are overdue.
//
// A channel of RabbitMQ 3.10 that was opened when the leader of a quorum queue had just gone nacks every message for this queue, also
// when the queue has had another leader for long. So a channel that nacks is replaced.

import type { Logger } from 'pino';
import { brokerUrls } from '../base/amqp/broker-urls.ts';
import { describeError } from '../base/errors.ts';
import type { CertificateFiles } from '../base/net/certificates.ts';
import { type BrokerError, type OpenChannel, openConfirmChannel } from './confirm-channel.ts';
import { type OutgoingMessage, type Publication, routeOf } from './publication.ts';
import { type Link, openRecoveringConnection } from './recovering-connection.ts';
import { createQueueLook, type QueueLook } from './queue-look.ts';
import { refusedRoute, type SentMessages } from './sent-messages.ts';
import { createSideChannel, type SideChannel } from './side-channel.ts';
import { createSlowRoutes } from './slow-routes.ts';
import { type Declared, declareTopology, type Topology } from './topology.ts';

export type PublisherState = { readonly connected: boolean; readonly blocked: boolean };

export type Publisher = {
  /** Whether it can publish now: connected, topology declared, not blocked. */
  readonly isReady: () => boolean;
  readonly state: () => PublisherState;
  /** Milliseconds since the connection was lost; 0 while connected, blocked or not. */
  readonly awayMs: () => number;
  /** One attempt. Never rejects. Mandatory, persistent. At most one in flight per message id. */
  readonly publish: (message: OutgoingMessage) => Promise<Publication>;
  readonly hasQueue: QueueLook;
  /** Closes the connection. What is in flight fails. Safe to call twice. */
  readonly close: () => Promise<void>;
};

/** The channels of one connection. */
type Channels = {
  readonly link: Link;
  /** Whether the broker has answered for any message: the first main channel is replaced only after that. */
  readonly hasAnswered: () => boolean;
  main: OpenChannel;
  /** Former ones that are still answered, and of which kind they were: nothing more is sent on them. */
  readonly replaced: Map<OpenChannel, 'slow' | 'other'>;
  /** For messages to one queue. */
  readonly queues: SideChannel;
  readonly slow: SideChannel;
  readonly hasQueue: QueueLook;
};

const CHECK_INTERVAL_MS = 1_000;
const OVERDUE = 'confirm overdue';
/**
 * A route is slow if a confirm is missing for this part of the deadline, while later messages were confirmed: 10 s of 40. A broker
 * whose disk is busy confirms within seconds. At 50 events a second a route has used up RELAY_IN_FLIGHT by then.
 */
export const SLOW_SHARE = 0.25;
const SLOW_MIN_MS = 1_000;
/** How many of all slow routes may be unconfirmed: RabbitMQ stops a channel at 60 or more. */
export const SLOW_IN_FLIGHT = 8;

/**
 * Between two replacements of a channel that nacks. It doubles each time, since a queue may be full, or have no leader yet; and is as
 * short as at first on a new connection, and when no channel had to be replaced for the longest time.
 */
const REPLACE_FIRST_MS = 1_000;
const REPLACE_MAX_MS = 30_000;

export function createPublisher(options: {
  url: string;
  /** For `amqps://`. */
  certificates?: CertificateFiles;
  topology: Topology;
  heartbeatS: number;
  connectTimeoutMs: number;
  confirmDeadlineMs: number;
  /** Monotonic milliseconds. */
  now: () => number;
  log: Logger;
  /** Called when publishing is possible again. */
  onReady: () => void;
}): Publisher {
  const { topology, confirmDeadlineMs, now, log, onReady } = options;
  const slowAfterMs = Math.max(SLOW_MIN_MS, confirmDeadlineMs * SLOW_SHARE);
  const hasOtherNodes = brokerUrls(options.url).length > 1;
  const slowRoutes = createSlowRoutes(log);
  let channels: Channels | undefined; // undefined while there are none to publish on
  let blocked = false;
  let closed = false;
  let lostMs = now();
  let slowInFlight = 0;
  let replacedMs = now();
  let replaceAfterMs = REPLACE_FIRST_MS;

  const connection = openRecoveringConnection({ ...options, setup });
  // Not in the timer itself: after the process stood still, timers are called before what has arrived meanwhile is read.
  const checks = setInterval(() => setImmediate(check), CHECK_INTERVAL_MS).unref();

  /** Opens a channel on each new connection. Errors propagate, so that another connection is tried. */
  async function setup(link: Link): Promise<() => boolean> {
    link.model.on('blocked', onBlocked);
    link.model.on('unblocked', onUnblocked);
    blocked = false;
    tell(await declareTopology(link.model, topology));
    const main = await openMain(link);
    const beside = () => createSideChannel((onClosed) => openChannel(link, onClosed));
    const hasQueue = createQueueLook(link.model);
    const { hasAnswered } = main.inFlight;
    channels = { link, hasAnswered, main, replaced: new Map(), queues: beside(), slow: beside(), hasQueue };
    restartReplacing();
    log.info({ address: link.address }, 'broker connected');
    onReady();
    // One that confirms nothing may be closed at each message: it must not be opened again in a hot loop.
    return hasAnswered;
  }

  async function openMain(link: Link): Promise<OpenChannel> {
    const main = await openChannel(link, (reason) => {
      if (channels?.main !== main) return; // it was given up or replaced before
      if (reason) log.warn({ err: describeError(reason) }, 'the broker closed the channel');
      giveUp(channels, reason ?? new Error('the broker closed the channel'));
    });
    if (!main.isOpen()) throw new Error('the channel closed during setup');
    return main;
  }

  function openChannel(
    link: Link,
    onClosed: (reason: BrokerError | undefined) => void,
  ): Promise<OpenChannel> {
    return openConfirmChannel(link, {
      exchange: topology.exchange.name,
      now,
      onClosed: (reason) => {
        const route = refusedRoute(reason);
        if (route !== undefined) slowRoutes.add(route, reason?.message ?? '');
        onClosed(reason);
      },
    });
  }

  function tell({ exchange, detail }: Declared): void {
    if (exchange === 'differs')
      log.warn({ detail }, 'the exchange exists with another argument, and is used');
    if (exchange === 'not ours')
      log.info({ detail }, 'the exchange exists and is used: our account may not declare it');
  }

  function onBlocked(): void {
    blocked = true;
    log.warn('the broker is blocked, publishing pauses');
  }

  function onUnblocked(): void {
    blocked = false;
    if (channels !== undefined) for (const { inFlight } of openOf(channels)) inFlight.restartDeadlines();
    log.info('the broker is unblocked');
    onReady();
  }

  /** Closes the connection, and another one is opened. What is in flight on side channels fails with their end. */
  function giveUp({ link }: Channels, reason: Error): void {
    channels = undefined;
    lostMs = now();
    link.lose(reason);
  }

  function send(message: OutgoingMessage, settled: (publication: Publication) => void): void {
    const open = channels;
    if (open === undefined) {
      settled({ result: 'failed', detail: 'not connected', blame: 'broker', durationMs: 0 });
      return;
    }
    if (!slowRoutes.isEmpty() && slowRoutes.has(routeOf(message))) return sendSlowly(open, message, settled);
    if (typeof message.queue === 'string') return sendBeside(open, open.queues, message, settled);
    try {
      open.main.send(message, settled);
    } catch (error) {
      // amqplib may have counted a message that was never sent: this channel's confirms are no longer of use.
      giveUp(open, error as Error);
      open.main.inFlight.failAll(describeError(error).message);
    }
  }

  /** That a side channel failed is no reason to wait for the broker: the connection is still there. */
  function sendBeside(
    open: Channels,
    channel: SideChannel,
    message: OutgoingMessage,
    settled: (publication: Publication) => void,
  ): void {
    channel.send(message, (publication) => {
      const isBroker = publication.result === 'failed' && publication.blame === 'broker';
      settled(isBroker && channels === open ? { ...publication, blame: 'route' } : publication);
    });
  }

  function sendSlowly(
    open: Channels,
    message: OutgoingMessage,
    settled: (publication: Publication) => void,
  ): void {
    if (slowInFlight >= SLOW_IN_FLIGHT) {
      const detail = `not sent: ${SLOW_IN_FLIGHT} events of slow routes are unconfirmed`;
      settled({ result: 'failed', detail, blame: 'route', durationMs: 0 });
      return;
    }
    slowInFlight += 1;
    sendBeside(open, open.slow, message, (publication) => {
      slowInFlight -= 1;
      // A nack may say that it is still slow: so RabbitMQ answers for a queue whose leader it cannot find.
      if (publication.result === 'confirmed' || publication.result === 'returned')
        slowRoutes.onConfirm(routeOf(message));
      settled(publication);
    });
  }

  function check(): void {
    if (channels === undefined || blocked) return;
    const present = channels;
    // What is unconfirmed of a slow route may hold up all that is behind it. And a node that fell silent may be cut off from the
    // others: another one is tried soon, which then has the full time, so that a queue without a leader does not make us change
    // nodes, with copies each time, for as long as it has none.
    const isSoon = !slowRoutes.isEmpty() || (hasOtherNodes && present.hasAnswered());
    const patienceMs = isSoon ? slowAfterMs : confirmDeadlineMs;
    watch(present.main, patienceMs, (reason) => giveUp(present, reason), present.hasAnswered);
    const [queues, slow] = [present.queues.current(), present.slow.current()];
    if (queues !== undefined) watch(queues, patienceMs, present.queues.giveUp);
    if (slow !== undefined) watch(slow, confirmDeadlineMs, present.slow.giveUp);
    if (channels !== present) return; // it was given up just now
    for (const [channel, kind] of present.replaced) {
      if (channel.inFlight.size() === 0) endReplaced(present, channel);
      else watchReplaced(present, channel, kind === 'slow' ? confirmDeadlineMs : patienceMs);
    }
    replaceNacked(present);
  }

  /**
   * That it is not answered says nothing of the broker: nothing later is sent there, so it may be one route that has no answer. But
   * while the broker has not answered on the channel that came after it, the whole node may be silent, which is found there.
   */
  function watchReplaced({ main }: Channels, { inFlight }: OpenChannel, patienceMs: number): void {
    failPassedOver(inFlight);
    if (main.inFlight.size() > 0 && !main.inFlight.hasAnswered()) return;
    const stuck = inFlight.overdue(inFlight.isAnswered(patienceMs) ? confirmDeadlineMs : patienceMs);
    // The others may only be held up by it.
    if (stuck[0] !== undefined && !stuck.some(({ route }) => slowRoutes.has(route)))
      slowRoutes.add(stuck[0].route, OVERDUE);
    for (const sent of stuck) inFlight.fail(sent, OVERDUE, 'route');
  }

  function endReplaced({ replaced }: Channels, channel: OpenChannel): void {
    replaced.delete(channel);
    if (channel.isOpen()) channel.close();
  }

  function restartReplacing(): void {
    replacedMs = now();
    replaceAfterMs = REPLACE_FIRST_MS;
  }

  /** What is in flight on a channel that is replaced gets its answers there. */
  function replaceNacked(present: Channels): void {
    const { main, queues, slow } = present;
    const isNacked = main.inFlight.isNacked();
    const beside = [queues, slow].filter((side) => side.current()?.inFlight.isNacked());
    const sinceMs = now() - replacedMs;
    if (!isNacked && beside.length === 0) {
      if (sinceMs > REPLACE_MAX_MS) replaceAfterMs = REPLACE_FIRST_MS;
      return;
    }
    if (sinceMs < replaceAfterMs) return;
    replacedMs = now();
    replaceAfterMs = Math.min(REPLACE_MAX_MS, replaceAfterMs * 2);
    for (const side of beside) {
      const former = side.replace();
      if (former !== undefined) present.replaced.set(former, side === slow ? 'slow' : 'other');
    }
    if (isNacked) void replaceMain(present);
  }

  async function replaceMain(present: Channels): Promise<void> {
    try {
      const main = await openMain(present.link);
      present.replaced.set(present.main, 'other');
      present.main = main;
      log.info('the broker nacks: events go by another channel');
    } catch (error) {
      // Otherwise the connection was lost meanwhile.
      if (channels === present) log.warn({ err: describeError(error) }, 'no other channel');
    }
  }

  /**
   * Fails what is overdue, and sooner what was passed over: it takes the place of others in flight. If the broker answers for none
   * within `patienceMs`, the channel is dead although it was not closed.
   * @param end gives the channel up
   * @param hasAnswered whether the broker has: for a main channel, on the same connection
   */
  function watch(
    { inFlight }: OpenChannel,
    patienceMs: number,
    end: (reason: Error) => void,
    hasAnswered: () => boolean = inFlight.hasAnswered,
  ): void {
    failPassedOver(inFlight);
    const stuck = inFlight.overdue(patienceMs);
    const isDead = stuck.length > 0 && !inFlight.isAnswered(patienceMs);
    for (const sent of isDead ? [] : inFlight.overdue(confirmDeadlineMs))
      inFlight.fail(sent, OVERDUE, 'route');
    if (!isDead) return;
    log.warn('no confirms from the broker, reopening the channel');
    // It never answered, as it would for other routes: the first message may be the one that holds it up.
    if (stuck[0] !== undefined && !hasAnswered()) slowRoutes.add(stuck[0].route, OVERDUE);
    end(new Error(OVERDUE));
    inFlight.failAll(OVERDUE);
  }

  function failPassedOver(inFlight: SentMessages): void {
    for (const sent of inFlight.passedOver(slowAfterMs)) {
      slowRoutes.add(sent.route, OVERDUE);
      inFlight.fail(sent, OVERDUE, 'route');
    }
  }

  function openOf({ main, replaced, queues, slow }: Channels): OpenChannel[] {
    return [main, ...replaced.keys(), queues.current(), slow.current()].filter((open) => open !== undefined);
  }

  return {
    isReady: () => channels !== undefined && !blocked,
    state: () => ({ connected: channels !== undefined, blocked }),
    awayMs: () => (channels === undefined ? now() - lostMs : 0),
    publish: (message) => new Promise((resolve) => send(message, resolve)),
    // A broker that is blocked answers nothing to a connection that publishes.
    hasQueue: async (queue) => (blocked ? undefined : channels?.hasQueue(queue)),
    close: async () => {
      if (closed) return;
      closed = true;
      clearInterval(checks);
      const last = channels;
      channels = undefined;
      await connection.close();
      if (last !== undefined) for (const { inFlight } of openOf(last)) inFlight.failAll('publisher closed');
    },
  };
}
