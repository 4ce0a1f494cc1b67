// Publishes to RabbitMQ on one confirm channel and reports the result of each message: confirmed, returned, nacked or failed.
// `failed` means unknown: the broker may have the message. amqplib's recovery reopens the connection. This file never
// publishes again, and queues nothing while the broker is down: the relay does both.

import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ChannelModel,
  type ConfirmChannel,
  connect,
  type MessageProperties,
  type RecoveringChannelModel,
} from 'amqplib';
import type { Logger } from 'pino';
import { describeError } from '../errors.ts';
import { declareTopology, type Topology } from './topology.ts';

export type OutgoingMessage = {
  readonly messageId: string;
  readonly routingKey: string;
  readonly contentType: string;
  readonly type: string;
  readonly timestamp: Date;
  readonly body: Buffer;
  /** Published only to this queue, not to the exchange. At most 255 bytes. */
  readonly queue?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
};

/**
 * The result of one publish attempt. `blame` names the cause of a failure: the event itself; the broker or the network, so that
 * any event would have failed; or unknown, if the broker closed the channel because of one of the messages in flight.
 */
export type Publication = { readonly durationMs: number } & (
  | { readonly result: 'confirmed' }
  | { readonly result: 'returned' | 'nacked'; readonly detail: string; readonly blame: 'event' }
  | { readonly result: 'failed'; readonly detail: string; readonly blame: 'event' | 'broker' | 'unknown' }
);

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

/** An error that amqplib emits. `code` is AMQP's reply code if the broker sent one. */
type BrokerError = Error & { readonly code?: unknown };

/** A message that was returned (basic.return). amqplib's own type leaves these fields out. */
type ReturnedMessage = {
  readonly fields: { readonly replyCode: number; readonly replyText: string };
  readonly properties: MessageProperties;
};

type InFlight = {
  readonly startedMs: number;
  readonly isForQueue: boolean;
  /** Why it was returned. The confirm follows and settles it. */
  returned: string | undefined;
  readonly settle: (publication: Publication) => void;
};

/** The broker closed the channel because of one message (its size, its frames), not because of the connection. */
const CONTENT_ERRORS: ReadonlySet<unknown> = new Set([311, 406, 501, 502, 540, 541]);

/** Our user may lack the permission to publish to a queue directly: then the cause is a message for a queue. */
const ACCESS_REFUSED = 403;

/** Its routing keys are names of queues. */
const DEFAULT_EXCHANGE = '';

/** If amqplib's recovery emits nothing for this long while not connected, it hangs: open a new connection. */
const RECOVERY_STALL_MS = 60_000;
const RECONNECT_FIRST_MS = 100;
const RECONNECT_MAX_MS = 5_000;
const CHECK_INTERVAL_MS = 1_000;
const CLOSE_TIMEOUT_MS = 2_000;

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
  const inFlight = new Map<string, InFlight>();
  let connection: RecoveringChannelModel | undefined;
  let current: { readonly channel: ConfirmChannel; readonly model: ChannelModel } | undefined;
  let blocked = false;
  let closed = false;
  let lastSignMs = now(); // the recovery's last event
  let lastConfirmMs = now();
  let lostMs = now();
  let unblockedMs = Number.NEGATIVE_INFINITY;
  let channelsLost = 0; // since the last confirm: a channel that closes at once must not be reopened in a hot loop

  async function open(): Promise<void> {
    lastSignMs = now();
    const opened = await connect(withHeartbeat(options.url, options.heartbeatS), {
      timeout: options.connectTimeoutMs,
      noDelay: true,
      keepAlive: true,
      clientProperties: { connection_name: 'tallyhook publisher' },
      recovery: {
        initialDelay: RECONNECT_FIRST_MS,
        maxDelay: RECONNECT_MAX_MS,
        waitForConnect: false,
        setup,
      },
    });
    if (closed) {
      await opened.close();
      return;
    }
    connection = opened;
    opened.on('error', (error) => log.warn({ err: describeError(error) }, 'broker connection error'));
    opened.on('disconnect', (error) => onRecoveryEvent('broker connection lost', error));
    opened.on('connect-failed', (error) => onRecoveryEvent('broker cannot be reached', error));
    opened.on('connect', () => {
      lastSignMs = now();
    });
  }

  function onRecoveryEvent(what: string, error: unknown): void {
    lastSignMs = now();
    log.warn({ err: describeError(error) }, what);
  }

  /** Opens a channel and declares the topology, on each connect. Errors propagate, so that the recovery tries again. */
  async function setup(model: ChannelModel): Promise<void> {
    let dead = false;
    let reason: BrokerError | undefined;
    const keepReason = (error: BrokerError) => {
      reason = error;
    };
    // This comes first: the model has no other listener yet, and an error without one would end the process.
    model.on('error', keepReason);
    model.on('blocked', onBlocked);
    model.on('unblocked', onUnblocked);
    blocked = false;
    const fresh = await model.createConfirmChannel();
    fresh.on('error', keepReason);
    fresh.on('return', onReturn);
    fresh.on('close', () => {
      dead = true;
      onChannelClosed(fresh, reason);
    });
    await declareTopology(fresh, topology);
    if (channelsLost > 1) await sleep(Math.min(RECONNECT_MAX_MS, RECONNECT_FIRST_MS * 2 ** channelsLost));
    // It was lost while we waited. Without this error the recovery would use the dead model.
    if (dead) throw new Error('the channel closed during setup');
    current = { channel: fresh, model };
    lastConfirmMs = now();
    log.info('broker connected');
    onReady();
  }

  function onBlocked(): void {
    blocked = true;
    log.warn('the broker is blocked, publishing pauses');
  }

  function onUnblocked(): void {
    blocked = false;
    unblockedMs = now();
    lastConfirmMs = unblockedMs;
    log.info('the broker is unblocked');
    onReady();
  }

  function onReturn({ fields, properties }: ReturnedMessage): void {
    const entry = inFlight.get(String(properties.messageId));
    if (entry) entry.returned = `${fields.replyCode} ${fields.replyText}`;
  }

  function onChannelClosed(channel: ConfirmChannel, reason: BrokerError | undefined): void {
    failInFlight(reason?.message ?? 'channel closed', reason?.code);
    if (current?.channel !== channel) return;
    if (reason) log.warn({ err: describeError(reason) }, 'the broker closed the channel');
    reconnect();
  }

  /** After every loss: closes the connection, and the recovery opens a new one with a new channel. */
  function reconnect(): void {
    const lost = current;
    current = undefined;
    channelsLost += 1;
    lostMs = now();
    lastSignMs = lostMs;
    lost?.model.close().catch(() => {});
  }

  function failInFlight(detail: string, code?: unknown): void {
    for (const entry of inFlight.values()) {
      const blame = blameOf(code, entry);
      entry.settle({ result: 'failed', detail, blame, durationMs: now() - entry.startedMs });
    }
  }

  function publish(message: OutgoingMessage): Promise<Publication> {
    const startedMs = now();
    const { promise, resolve } = Promise.withResolvers<Publication>();
    const entry: InFlight = {
      startedMs,
      isForQueue: typeof message.queue === 'string',
      returned: undefined,
      settle: (publication) => {
        if (inFlight.get(message.messageId) === entry) inFlight.delete(message.messageId);
        resolve(publication);
      },
    };
    if (current === undefined) {
      resolve({ result: 'failed', detail: 'not connected', blame: 'broker', durationMs: 0 });
      return promise;
    }
    inFlight.set(message.messageId, entry);
    try {
      // The callback must not throw: amqplib would not call those of the other messages of the same confirm.
      const { channel } = current;
      channel.publish(
        typeof message.queue === 'string' ? DEFAULT_EXCHANGE : topology.exchange.name,
        message.queue ?? message.routingKey,
        message.body,
        propertiesOf(message),
        (error: unknown) => onConfirm(entry, error),
      );
    } catch (error) {
      // amqplib may have counted a message that was never sent: this channel's confirms are no longer of use.
      reconnect();
      const detail = describeError(error).message;
      entry.settle({ result: 'failed', detail, blame: 'broker', durationMs: 0 });
    }
    return promise;
  }

  function onConfirm(entry: InFlight, error: unknown): void {
    const durationMs = now() - entry.startedMs;
    const nacked = error instanceof Error && error.message === 'message nacked';
    if (error !== null && !nacked) return; // the channel closed: `onChannelClosed` settles the entry, with the reason
    lastConfirmMs = now();
    channelsLost = 0;
    entry.settle({ ...outcomeOf(entry, nacked), durationMs });
  }

  /** The watchdog: fails messages whose confirm is overdue, and opens a new connection when the recovery hangs. */
  function check(): void {
    if (!blocked) failOverdue();
    if (current === undefined && now() - lastSignMs > RECOVERY_STALL_MS) {
      log.error('the broker connection does not recover, opening a new one');
      const stalled = connection;
      void stalled?.close().catch(() => {});
      openAndLog();
    }
  }

  function failOverdue(): void {
    // Messages that waited for a blocked broker get their full time again when it is unblocked.
    const overdue = [...inFlight.values()].filter(
      (entry) => now() - Math.max(entry.startedMs, unblockedMs) > confirmDeadlineMs,
    );
    if (overdue.length === 0) return;
    const isAlive = now() - lastConfirmMs < confirmDeadlineMs;
    if (!isAlive && current !== undefined) {
      // Nothing was confirmed for this long: the channel is dead, although it was not closed.
      log.warn('no confirms from the broker, reopening the connection');
      reconnect();
    }
    const blame = isAlive ? 'event' : 'broker';
    for (const entry of overdue) {
      const durationMs = now() - entry.startedMs;
      entry.settle({ result: 'failed', detail: 'confirm overdue', blame, durationMs });
    }
  }

  function openAndLog(): void {
    open().catch((error: unknown) =>
      log.error({ err: describeError(error) }, 'broker connection cannot be opened'),
    );
  }

  openAndLog();
  const checks = setInterval(check, CHECK_INTERVAL_MS).unref();

  return {
    isReady: () => current !== undefined && !blocked,
    state: () => ({ connected: current !== undefined, blocked }),
    awayMs: () => (current === undefined ? now() - lostMs : 0),
    publish,
    close: async () => {
      if (closed) return;
      closed = true;
      clearInterval(checks);
      current = undefined;
      // A broker that does not answer must not delay the shutdown for longer.
      await Promise.race([connection?.close(), sleep(CLOSE_TIMEOUT_MS)]);
      failInFlight('publisher closed');
    },
  };
}

/** Of a message that the broker has settled: a basic.return comes before the confirm. */
function outcomeOf({ returned }: InFlight, nacked: boolean) {
  if (nacked) return { result: 'nacked', detail: 'nacked by the broker', blame: 'event' } as const;
  if (returned === undefined) return { result: 'confirmed' } as const;
  return { result: 'returned', detail: returned, blame: 'event' } as const;
}

/** Of a message that was in flight when the channel closed with this reply code. */
function blameOf(code: unknown, { isForQueue }: InFlight): 'unknown' | 'broker' {
  const isForContent = CONTENT_ERRORS.has(code) || (code === ACCESS_REFUSED && isForQueue);
  return isForContent ? 'unknown' : 'broker';
}

function propertiesOf(message: OutgoingMessage) {
  return {
    messageId: message.messageId,
    contentType: message.contentType,
    type: message.type,
    timestamp: Math.floor(message.timestamp.getTime() / 1_000), // AMQP counts seconds
    appId: 'tallyhook',
    persistent: true,
    mandatory: true,
    ...(message.headers === undefined ? {} : { headers: message.headers }),
  };
}

/** amqplib reads the heartbeat only from the URL. With its default of 60 s a lost connection is noticed after minutes. */
function withHeartbeat(url: string, seconds: number): string {
  const parsed = new URL(url);
  if (!parsed.searchParams.has('heartbeat')) parsed.searchParams.set('heartbeat', String(seconds));
  return parsed.href;
}
