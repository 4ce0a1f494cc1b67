// Publishes to RabbitMQ on one confirm channel and reports the result of each message: confirmed, returned, nacked or failed.
// `failed` means unknown: the broker may have the message. This file never publishes again, and queues nothing while the broker
// is down: the relay does both. Its watchdog fails messages whose confirm is overdue.

import { setTimeout as sleep } from 'node:timers/promises';
import type { ChannelModel } from 'amqplib';
import type { Logger } from 'pino';
import { describeError } from '../errors.ts';
import { type BrokerError, type OpenChannel, openConfirmChannel } from './confirm-channel.ts';
import type { OutgoingMessage, Publication } from './publication.ts';
import { openRecoveringConnection, RECONNECT_FIRST_MS, RECONNECT_MAX_MS } from './recovering-connection.ts';
import type { Topology } from './topology.ts';

export type { OutgoingMessage, Publication } from './publication.ts';

export type PublisherState = { readonly connected: boolean; readonly blocked: boolean };

export type Publisher = {
  /** Whether it can publish now: connected, topology declared, not blocked. */
  readonly isReady: () => boolean;
  readonly state: () => PublisherState;
  /** Milliseconds since the connection was lost; 0 while connected, blocked or not. */
  readonly awayMs: () => number;
  /** One attempt. Never rejects. Mandatory, persistent. At most one in flight per message id. */
  readonly publish: (message: OutgoingMessage) => Promise<Publication>;
  /** Closes the connection. What is in flight fails. Safe to call twice. */
  readonly close: () => Promise<void>;
};

const CHECK_INTERVAL_MS = 1_000;
const OVERDUE = 'confirm overdue';

export function createPublisher(options: {
  url: string;
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
  let channel: OpenChannel | undefined; // undefined while there is none to publish on
  let blocked = false;
  let closed = false;
  let lostMs = now();
  let losses = 0; // since a channel confirmed anything: one that closes at once must not be reopened in a hot loop

  const connection = openRecoveringConnection({ ...options, setup });
  const checks = setInterval(check, CHECK_INTERVAL_MS).unref();

  /** Opens a channel on each new connection. Errors propagate, so that the recovery tries again. */
  async function setup(model: ChannelModel): Promise<void> {
    model.on('blocked', onBlocked);
    model.on('unblocked', onUnblocked);
    blocked = false;
    const fresh = await openConfirmChannel(model, { topology, now, onClosed });
    if (losses > 1) await sleep(Math.min(RECONNECT_MAX_MS, RECONNECT_FIRST_MS * 2 ** losses));
    // It was lost while we waited. Without this error the recovery would use the dead model.
    if (!fresh.isOpen()) throw new Error('the channel closed during setup');
    if (closed) return; // the recovery has stopped, and closes the model
    channel = fresh;
    log.info('broker connected');
    onReady();
  }

  function onBlocked(): void {
    blocked = true;
    log.warn('the broker is blocked, publishing pauses');
  }

  function onUnblocked(): void {
    blocked = false;
    channel?.inFlight.restartDeadlines();
    log.info('the broker is unblocked');
    onReady();
  }

  function onClosed(reason: BrokerError | undefined): void {
    if (channel === undefined || channel.isOpen()) return; // an older channel, or one that was never ready
    if (reason) log.warn({ err: describeError(reason) }, 'the broker closed the channel');
    giveUp(channel);
  }

  /** After every loss: closes the connection, and the recovery opens a new one with a new channel. */
  function giveUp(lost: OpenChannel): void {
    channel = undefined;
    losses = lost.inFlight.hasAnswered() ? 1 : losses + 1;
    lostMs = now();
    connection.lost();
    lost.close();
  }

  function send(message: OutgoingMessage, settled: (publication: Publication) => void): void {
    const open = channel;
    if (open === undefined) {
      settled({ result: 'failed', detail: 'not connected', blame: 'broker', durationMs: 0 });
      return;
    }
    try {
      open.send(message, settled);
    } catch (error) {
      // amqplib may have counted a message that was never sent: this channel's confirms are no longer of use.
      giveUp(open);
      open.inFlight.failAll(describeError(error).message);
    }
  }

  /** The watchdog: fails messages whose confirm is overdue, and finds a recovery that hangs. */
  function check(): void {
    if (channel === undefined) connection.check();
    else if (!blocked) failOverdue(channel);
  }

  function failOverdue(open: OpenChannel): void {
    const overdue = open.inFlight.overdue(confirmDeadlineMs);
    if (overdue.length === 0) return;
    if (open.inFlight.isAnswered(confirmDeadlineMs)) {
      for (const sent of overdue) open.inFlight.fail(sent, OVERDUE, 'event');
      return;
    }
    // Nothing was confirmed for this long: the channel is dead, although it was not closed.
    log.warn('no confirms from the broker, reopening the connection');
    giveUp(open);
    open.inFlight.failAll(OVERDUE);
  }

  return {
    isReady: () => channel !== undefined && !blocked,
    state: () => ({ connected: channel !== undefined, blocked }),
    awayMs: () => (channel === undefined ? now() - lostMs : 0),
    publish: (message) => new Promise((resolve) => send(message, resolve)),
    close: async () => {
      if (closed) return;
      closed = true;
      clearInterval(checks);
      const last = channel;
      channel = undefined;
      await connection.close();
      last?.inFlight.failAll('publisher closed');
    },
  };
}
