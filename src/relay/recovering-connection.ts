// Keeps one connection to the broker: opens another one after each loss, with a growing pause after connections that were of no
// use. Publishes nothing: `setup` makes each new connection ready. Does not use amqplib's recovery, since that does not tell why it
// was refused, and waits for ever for the end of a connection that does not answer.

import { setTimeout as sleep } from 'node:timers/promises';
import type { ChannelModel } from 'amqplib';
import type { Logger } from 'pino';
import { addressOf, openBrokerConnection } from '../base/amqp/broker-connection.ts';
import { createTurns } from '../base/amqp/broker-urls.ts';
import { BrokerRefusalError, describeError } from '../base/errors.ts';
import { type CertificateFiles, readCertificates } from '../base/net/certificates.ts';
import { type BrokerSocket, brokerSocket } from './broker-socket.ts';

export type Link = {
  readonly model: ChannelModel;
  readonly socket: BrokerSocket;
  /** Of the node: `host:port`. */
  readonly address: string;
  /** Gives the connection up; another one is opened. */
  readonly lose: (reason: Error) => void;
  /** Why it was lost, if it was and the reason is known. */
  readonly lostBecause: () => Error | undefined;
};

export type RecoveringConnection = {
  /** Does not wait long for a broker that does not answer. Safe to call twice. */
  readonly close: () => Promise<void>;
};

const RECONNECT_FIRST_MS = 100;
const RECONNECT_MAX_MS = 5_000;
/** A part of each pause is random, so that replicas do not come back at the same moment. */
const RANDOM_SHARE = 0.2;
/** A broker that does not answer while a connection is made ready: as long as RabbitMQ waits for a node that is gone. */
const SETUP_TIMEOUT_MS = 60_000;
/**
 * A broker that is silent does not answer a close, and neither does one whose channel waits for a queue without a leader: for
 * up to 65 s, RabbitMQ's net_ticktime and 5 s. The next connection waits for the end of this one: an account may be allowed one.
 */
const CLOSE_TIMEOUT_MS = 2_000;

/**
 * @param options.url of the broker, or those of its nodes with commas between them: each is tried in its turn
 * @param options.setup called with each new connection. If it rejects, that one is closed and the next one is tried. It resolves
 * with a question that is asked when the connection was lost: whether it was of any use. If not, the next pause is longer
 */
export function openRecoveringConnection(options: {
  url: string;
  certificates?: CertificateFiles;
  heartbeatS: number;
  connectTimeoutMs: number;
  setup: (link: Link) => Promise<() => boolean>;
  log: Logger;
}): RecoveringConnection {
  const { log, setup } = options;
  const closing = new AbortController();
  const nodes = createTurns(options.url);
  let current: Link | undefined;

  async function run(): Promise<void> {
    for (let useless = 0; !closing.signal.aborted; ) {
      useless = (await liveOnce()) ? 0 : useless + 1;
      await sleep(pauseMs(useless / nodes.count), undefined, { signal: closing.signal }).catch(() => {});
    }
  }

  /** From connecting to the loss. Never rejects. @returns whether the connection was of use */
  async function liveOnce(): Promise<boolean> {
    const url = nodes.next();
    try {
      const model = await openBrokerConnection({
        url,
        certificates: () => readCertificates(options.certificates ?? {}),
        name: 'tallyhook publisher',
        heartbeatS: options.heartbeatS,
        timeoutMs: options.connectTimeoutMs,
      });
      const { link, lost } = toLink(model, addressOf(url));
      current = link;
      try {
        return await use(link, lost);
      } finally {
        await end(link);
      }
    } catch (error) {
      if (!closing.signal.aborted) log.warn({ err: describeError(error) }, titleOf(error));
      return false;
    }
  }

  /** @throws why it could not be made ready */
  async function use(link: Link, lost: Promise<Error>): Promise<boolean> {
    if (closing.signal.aborted) return false;
    const wasOfUse = await Promise.race([setup(link), failing(lost), timeOut()]);
    const error = await lost;
    if (!closing.signal.aborted) log.warn({ err: describeError(error) }, 'broker connection lost');
    return wasOfUse();
  }

  const ended = run();

  return {
    close: async () => {
      closing.abort();
      if (current !== undefined) await end(current);
      await Promise.race([ended, sleep(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
    },
  };
}

function toLink(model: ChannelModel, address: string): { link: Link; lost: Promise<Error> } {
  const { promise: lost, resolve } = Promise.withResolvers<Error>();
  let reason: Error | undefined;
  const lose = (error: Error) => {
    reason ??= error;
    resolve(error);
  };
  model.on('error', lose);
  model.on('close', (error?: Error) => lose(error ?? new Error('the connection was closed')));
  return { link: { model, socket: brokerSocket(model), address, lose, lostBecause: () => reason }, lost };
}

/** @throws Error if the setup takes too long */
async function timeOut(): Promise<never> {
  await sleep(SETUP_TIMEOUT_MS, undefined, { ref: false });
  throw new Error('the broker did not answer while the connection was made ready');
}

/** Resolves when it is closed, or soon. */
async function end({ model, socket }: Link): Promise<void> {
  const closed = model.close().then(isClosed, isClosed); // it rejects if it was closed before
  const isInTime = await Promise.race([closed, sleep(CLOSE_TIMEOUT_MS, false, { ref: false })]);
  if (!isInTime) socket.destroy('the broker did not close the connection');
}

const isClosed = () => true;

async function failing(lost: Promise<Error>): Promise<never> {
  throw await lost;
}

/** @param useless connections in a row that were of no use, to each node */
function pauseMs(useless: number): number {
  const longest = Math.min(RECONNECT_MAX_MS, RECONNECT_FIRST_MS * 2 ** Math.floor(useless));
  return longest * (1 - RANDOM_SHARE * Math.random());
}

function titleOf(error: unknown): string {
  if (!(error instanceof BrokerRefusalError)) return 'broker cannot be reached';
  return error.code === 'tls_failed' ? 'no TLS with the broker' : 'the broker refuses us';
}
