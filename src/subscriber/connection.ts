// Keeps one connection to the broker: opens it, sets it up, and opens another one when it is lost, with a growing wait between
// attempts. Does not use amqplib's recovery, since that waits for ever to close a connection that does not answer.

import { setTimeout as sleep } from 'node:timers/promises';
import type { ChannelModel } from 'amqplib';
import { openBrokerConnection } from '../base/amqp/broker-connection.ts';
import { createTurns } from '../base/amqp/broker-urls.ts';
import { BrokerRefusalError } from '../base/errors.ts';
import type { Certificates } from '../base/net/certificates.ts';
import { backoffMs } from './backoff.ts';
import { SubscriberError } from './errors.ts';
import { messageOf } from './notices.ts';
import { orAfter } from './or-after.ts';

export type Link = {
  readonly model: ChannelModel;
  readonly isOpen: () => boolean;
  /** Gives the connection up; another one is opened. */
  readonly fail: (error: Error) => void;
};

export type Connection = {
  /** Resolves when the first setup is done. Rejects if what is wrong does not mend itself: access, another form of queue. */
  readonly started: Promise<void>;
  /** Safe to call twice. */
  readonly close: () => Promise<void>;
};

const HEARTBEAT_S = 10;
/** A handshake that hangs must not hold up the next attempt. */
const CONNECT_TIMEOUT_MS = 5_000;
/** A broker that does not answer must not hold up the end. */
const CLOSE_TIMEOUT_MS = 2_000;
const BACKOFF = { firstMs: 200, maxMs: 10_000 };
/** A connection that lasted for less counts as a failed attempt: one that is closed again at once makes no hot loop. */
const LASTING_MS = 10_000;
/** They stay until a person changes something. What else the broker refuses may mend itself: a limit, a port whose proxy has no server. */
const FAULTS: ReadonlySet<SubscriberError['code']> = new Set(['access_refused', 'queue_differs']);

/** Waits, but not for long, and not for a result. */
const soon = (work: () => Promise<unknown>) =>
  orAfter(
    called(work).catch(() => {}),
    CLOSE_TIMEOUT_MS,
  );

/** amqplib may throw where it returns a promise. */
const called = async (work: () => Promise<unknown>): Promise<unknown> => await work();

export function keepConnected(options: {
  /** Of the broker, or those of its nodes with commas between them: each is tried in its turn. */
  readonly url: string;
  readonly certificates: () => Certificates | Promise<Certificates>;
  readonly name: string;
  /** Declares and consumes, on each connection. If it rejects, the connection is closed. */
  readonly setup: (link: Link) => Promise<void>;
  readonly onLost: (error: Error) => void;
  readonly onFailed: (error: Error, retryInMs: number) => void;
}): Connection {
  const closing = new AbortController();
  const nodes = createTurns(options.url);
  const started = Promise.withResolvers<void>();
  started.promise.catch(() => {}); // whoever waits for it hears of it
  let close: (() => Promise<void>) | undefined;
  let hasStarted = false;

  async function run(): Promise<void> {
    for (let failed = 1; !closing.signal.aborted; failed += 1) {
      try {
        const openedMs = performance.now();
        await liveOnce(() => {
          hasStarted = true;
          started.resolve();
        });
        if (performance.now() - openedMs > LASTING_MS) failed = 1;
        await pause(retryMs(failed));
      } catch (error) {
        if (closing.signal.aborted) return;
        const reason = toConnectError(error);
        if (!hasStarted && reason instanceof SubscriberError && FAULTS.has(reason.code)) {
          started.reject(reason);
          return;
        }
        const retryInMs = retryMs(failed);
        options.onFailed(reason, retryInMs);
        await pause(retryInMs);
      }
    }
  }

  /** It grows once all nodes were tried. */
  const retryMs = (failed: number) => backoffMs(BACKOFF, Math.ceil(failed / nodes.count));

  /** From connecting to the loss. @throws why it never worked */
  async function liveOnce(onSetUp: () => void): Promise<void> {
    const model = await openBrokerConnection({
      url: nodes.next(),
      certificates: options.certificates,
      name: options.name,
      heartbeatS: HEARTBEAT_S,
      timeoutMs: CONNECT_TIMEOUT_MS,
    });
    const { promise: lost, resolve: lose } = Promise.withResolvers<Error>();
    let isOpen = true;
    const fail = (error: Error) => {
      isOpen = false;
      lose(error);
    };
    model.on('error', fail);
    model.on('close', (error?: Error) => fail(error ?? new Error('the connection was closed')));
    close = () => soon(() => model.close());
    try {
      if (closing.signal.aborted) return;
      const setUp = options.setup({ model, isOpen: () => isOpen, fail });
      const failure = await Promise.race([setUp, lost]);
      if (failure instanceof Error) throw failure;
      onSetUp();
      const error = await lost;
      if (!closing.signal.aborted) options.onLost(error);
    } finally {
      isOpen = false;
      await close();
    }
  }

  const pause = (ms: number) => sleep(ms, undefined, { signal: closing.signal }).catch(() => {});

  const ended = run();
  return {
    started: started.promise,
    close: async () => {
      closing.abort();
      await close?.();
      await soon(() => ended);
      started.reject(new Error('the subscriber was stopped'));
    },
  };
}

function toConnectError(error: unknown): Error {
  if (error instanceof BrokerRefusalError)
    return new SubscriberError(error.code, error.message, { cause: error });
  return error instanceof Error ? error : new Error(messageOf(error));
}
