// The listeners to live events. Limits their number, sends heartbeats, cuts those that stop reading, and ends them when
// their token is no longer valid and when the service stops.

import type { Logger } from 'pino';
import { ApiError, type Caller } from '../kernel/operation/operation.ts';
import { type IsTokenValid, mayGoOn } from '../kernel/operation/token-check.ts';
import { createLiveStream, type LiveStream } from './stream.ts';

export type Listeners = {
  /** Takes a place, until the stream is closed. @throws ApiError 429 or 503 if there is none left */
  readonly admit: (caller: Caller) => LiveStream;
  /** One round of heartbeats and checks. Never rejects. */
  readonly runOnce: () => Promise<void>;
  /** Ends all listeners (those with unread events are cut) and admits no more. */
  readonly end: () => void;
};

/** Each takes one of the operators' 256 connections and up to 1 MiB. Enough for a console for every operator. */
const LISTENERS_MAX = 32;
/** So that one program that never hangs up does not take all places. */
const LISTENERS_PER_TOKEN_MAX = 8;
/** Load balancers close connections that are silent for 60 s, some for 30. */
const HEARTBEAT_MS = 15_000;
/** A client that reads nothing for so long is gone, or has missed too much. */
const STALLED_MS = 60_000;
/** Each round looks up the tokens of at most LISTENERS_MAX by their keys: whoever signs out sees nothing more soon after. */
const ROUND_INTERVAL_MS = 5_000;

type Listener = { readonly live: LiveStream; readonly caller: Caller; beatMs: number };

export function createListeners(options: {
  isTokenValid: IsTokenValid;
  /** Monotonic milliseconds. */
  now: () => number;
  log: Logger;
}): Listeners {
  const { isTokenValid, now, log } = options;
  const listeners = new Set<Listener>();
  let isEnded = false;
  let rounds: NodeJS.Timeout | undefined;

  function admit(caller: Caller): LiveStream {
    const own = Array.from(listeners).filter(({ caller: { tokenId } }) => tokenId === caller.tokenId).length;
    if (own >= LISTENERS_PER_TOKEN_MAX) {
      throw tooMany(429, `this token listens ${own} times already: end one of them first`);
    }
    if (isEnded || listeners.size >= LISTENERS_MAX) {
      throw tooMany(503, `${LISTENERS_MAX} listen already: try again when one of them is gone`);
    }
    const live = createLiveStream({ now });
    const listener = { live, caller, beatMs: now() };
    listeners.add(listener);
    live.stream.once('close', () => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      clearInterval(rounds);
      rounds = undefined;
    });
    rounds ??= setInterval(() => void runOnce(), ROUND_INTERVAL_MS).unref();
    return live;
  }

  async function runOnce(): Promise<void> {
    await Promise.all(Array.from(listeners, check));
  }

  async function check(listener: Listener): Promise<void> {
    const { live } = listener;
    if (live.stalledMs() >= STALLED_MS) return void live.stream.destroy();
    if (now() - listener.beatMs >= HEARTBEAT_MS) {
      listener.beatMs = now();
      live.beat();
    }
    const isAllowed = await mayGoOn(listener.caller, {
      isTokenValid,
      what: 'whether a listener may stay',
      log,
    });
    if (!isAllowed) live.end();
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

const tooMany = (status: 429 | 503, message: string) => new ApiError(status, 'too_many_listeners', message);
