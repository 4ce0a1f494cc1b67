// Those who listen to live events: so many and no more, kept alive by heartbeats, cut when they stopped reading, ended
// when their token no longer holds and when the service stops.

import type { Logger } from 'pino';
import { createLiveStream, type LiveStream } from './live-stream.ts';
import { ApiError, type Caller } from './operation.ts';
import { type Holds, mayGoOn, TOKEN_CHECK_MS } from './token-check.ts';

export type Listeners = {
  /** A place, until its stream is closed. @throws ApiError 429 or 503 where there is none */
  readonly admit: (caller: Caller) => LiveStream;
  /** One round of what has to be done now and then. Never rejects. */
  readonly runOnce: () => Promise<void>;
  /** Ends all. Those who do not read are cut. Admits nobody any more. */
  readonly end: () => void;
};

/** Each holds a connection of the operators' 256 and up to 1 MiB; a console for every operator fits. */
const LISTENERS_MAX = 32;
/** One program that forgets to hang up must not shut the others out. */
const LISTENERS_PER_TOKEN_MAX = 8;
/** Balancers cut what is silent for 60 s, some for 30. */
const HEARTBEAT_MS = 15_000;
/** Whoever reads nothing for so long is gone, or has missed more than he can use. */
const STALLED_MS = 60_000;
const ROUND_INTERVAL_MS = 5_000;

type Listener = { readonly live: LiveStream; readonly tokenId: string; beatMs: number; checkedMs: number };

export function createListeners(options: {
  holds: Holds;
  /** Monotonic milliseconds. */
  now: () => number;
  log: Logger;
}): Listeners {
  const { holds, now, log } = options;
  const listeners = new Set<Listener>();
  let isEnded = false;
  let rounds: NodeJS.Timeout | undefined;

  function admit({ tokenId }: Caller): LiveStream {
    const own = [...listeners].filter((listener) => listener.tokenId === tokenId).length;
    if (own >= LISTENERS_PER_TOKEN_MAX) {
      throw tooMany(429, `this token listens ${own} times already: end one of them first`);
    }
    if (isEnded || listeners.size >= LISTENERS_MAX) {
      throw tooMany(503, `${LISTENERS_MAX} listen already: try again when one of them is gone`);
    }
    const live = createLiveStream({ now });
    const listener = { live, tokenId, beatMs: now(), checkedMs: now() };
    listeners.add(listener);
    live.stream.once('close', () => {
      listeners.delete(listener);
      if (listeners.size === 0) clearInterval(rounds);
      if (listeners.size === 0) rounds = undefined;
    });
    rounds ??= setInterval(() => void runOnce(), ROUND_INTERVAL_MS).unref();
    return live;
  }

  async function runOnce(): Promise<void> {
    await Promise.all(Array.from(listeners, attend));
  }

  async function attend(listener: Listener): Promise<void> {
    const { live } = listener;
    if (live.stalledMs() >= STALLED_MS) return void live.stream.destroy();
    if (now() - listener.beatMs >= HEARTBEAT_MS) {
      listener.beatMs = now();
      live.beat();
    }
    if (now() - listener.checkedMs < TOKEN_CHECK_MS) return;
    listener.checkedMs = now();
    if (!(await mayGoOn(listener.tokenId, { holds, what: 'whether a listener may stay', log }))) live.end();
  }

  return {
    admit,
    runOnce,
    end: () => {
      isEnded = true;
      for (const { live } of listeners) live.end();
    },
  };
}

const tooMany = (status: number, message: string) => new ApiError(status, 'too_many_listeners', message);
