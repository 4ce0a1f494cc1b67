// The connection to the broker. amqplib's recovery opens it again after every loss; when the recovery itself hangs, `check` opens
// another one. Publishes nothing: `setup` makes each new connection ready.

import { setTimeout as sleep } from 'node:timers/promises';
import { type ChannelModel, connect, type RecoveringChannelModel } from 'amqplib';
import type { Logger } from 'pino';
import { describeError } from '../errors.ts';

export type RecoveringConnection = {
  /** A loss was noticed here, so the recovery has its full time from now on. */
  readonly lost: () => void;
  /** Call it while not connected: opens another connection if the recovery has shown no sign of life for too long. */
  readonly check: () => void;
  /** Does not wait long for a broker that does not answer. */
  readonly close: () => Promise<void>;
};

/** If amqplib's recovery emits nothing for this long while not connected, it hangs: open a new connection. */
const RECOVERY_STALL_MS = 60_000;
export const RECONNECT_FIRST_MS = 100;
export const RECONNECT_MAX_MS = 5_000;
const CLOSE_TIMEOUT_MS = 2_000;

/** @param options.setup called with each new connection. If it rejects, the recovery tries again with the next one */
export function openRecoveringConnection(options: {
  url: string;
  heartbeatS: number;
  connectTimeoutMs: number;
  setup: (model: ChannelModel) => Promise<void>;
  /** Monotonic milliseconds. */
  now: () => number;
  log: Logger;
}): RecoveringConnection {
  const { now, log } = options;
  const url = withHeartbeat(options.url, options.heartbeatS);
  let connection: RecoveringChannelModel | undefined;
  let closed = false;
  let lastSignMs = now(); // the recovery's last event

  async function open(): Promise<void> {
    lastSignMs = now();
    const opened = await connect(url, {
      timeout: options.connectTimeoutMs,
      noDelay: true,
      keepAlive: true,
      clientProperties: { connection_name: 'tallyhook publisher' },
      recovery: {
        initialDelay: RECONNECT_FIRST_MS,
        maxDelay: RECONNECT_MAX_MS,
        waitForConnect: false,
        setup: options.setup,
      },
    });
    if (closed) {
      await opened.close();
      return;
    }
    connection = opened;
    opened.on('error', (error) => log.warn({ err: describeError(error) }, 'broker connection error'));
    opened.on('disconnect', (error) => onSign('broker connection lost', error));
    opened.on('connect-failed', (error) => onSign('broker cannot be reached', error));
    opened.on('connect', () => {
      lastSignMs = now();
    });
  }

  function onSign(what: string, error: unknown): void {
    lastSignMs = now();
    log.warn({ err: describeError(error) }, what);
  }

  function openAndLog(): void {
    open().catch((error: unknown) =>
      log.error({ err: describeError(error) }, 'broker connection cannot be opened'),
    );
  }

  openAndLog();

  return {
    lost: () => {
      lastSignMs = now();
    },

    check: () => {
      if (now() - lastSignMs <= RECOVERY_STALL_MS) return;
      log.error('the broker connection does not recover, opening a new one');
      void connection?.close().catch(() => {});
      openAndLog();
    },

    close: async () => {
      closed = true;
      await Promise.race([connection?.close(), sleep(CLOSE_TIMEOUT_MS)]);
    },
  };
}

/** amqplib reads the heartbeat only from the URL. With its default of 60 s a lost connection is noticed after minutes. */
function withHeartbeat(url: string, seconds: number): string {
  const parsed = new URL(url);
  if (!parsed.searchParams.has('heartbeat')) parsed.searchParams.set('heartbeat', String(seconds));
  return parsed.href;
}
