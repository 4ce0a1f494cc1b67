// The operator's decisions while the run goes on: parks events that are still to be published, as they stand in the outbox at
// random moments, and some seconds later has each published after all, or discards it. A decision without an answer is asked for
// again with the same Idempotency-Key, until it is answered.

import { randomUUID } from 'node:crypto';
import { OUTBOX } from '../support/outbox.ts';
import { pause } from '../support/until.ts';
import { EVENT_KEY } from './ledger-facts.ts';
import type { Random } from './random.ts';
import type { Parked } from './recorded.ts';
import type { World } from './world.ts';

export type Decisions = {
  /** Every park that was answered. */
  readonly parked: readonly Parked[];
  /** Parks nothing more, and decides about all that is parked. Resolves when that is answered, or after `limitMs`. */
  readonly stop: (limitMs: number) => Promise<void>;
};

type Candidate = { readonly sequence: string; readonly id: string };
type Reply = {
  readonly status: number;
  readonly error: string | undefined;
  readonly result: string | undefined;
};

const TICK_MS = [200, 700] as const;
const AT_A_TIME = [1, 3] as const;
/** Most are longer than the fault during which they began, so that the check has something to see. */
const HELD_MS = [2_500, 12_000] as const;
const DISCARDED = 0.3;
/** With their settling, it keeps the requests below API_REQUESTS_PER_MINUTE. */
const OPEN_MAX = 40;
const AGAIN_MS = 400;
const ANSWER_LIMIT_MS = 8_000;
const QUERY_LIMIT_MS = 1_000;

/** Those behind another event of their job more often: they are not in flight, and may wait in the leader's memory. */
const PENDING = `
select o.sequence::text, ${EVENT_KEY} as id from ${OUTBOX.replace(/as outbox$/, 'as o')} join events e on e.sequence = o.sequence
where o.state = 'pending' and o.replay_id is null
order by random() + (row_number() over (partition by o.source, o.job_id order by o.sequence) = 1)::int * 0.8 limit $1`;

export function startDecisions(options: {
  world: World;
  random: Random;
  token: () => Promise<string>;
}): Decisions {
  const { world, random, token } = options;
  const parked: Parked[] = [];
  const open = new Map<string, Promise<void>>();
  const stopping = Promise.withResolvers<void>();
  let stopByMs = Number.POSITIVE_INFINITY;
  const isStopping = () => Number.isFinite(stopByMs);

  async function ask(sequence: string, action: string, key: string): Promise<Reply> {
    const { operators } = random.pick(world.replicas);
    const response = await fetch(`${operators}/api/v1/outbox/${action}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${await token()}`,
        'idempotency-key': key,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ ids: [sequence] }),
      signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
    });
    const { error, items = [] } = (await response.json()) as { error?: string; items?: { result: string }[] };
    return { status: response.status, error, result: items[0]?.result };
  }

  /** @returns whether it was done; undefined if nobody knows when the run ends. @throws Error for an answer that is not due */
  async function decide(
    sequence: string,
    action: 'park' | 'retry' | 'discard',
  ): Promise<boolean | undefined> {
    const key = randomUUID();
    while (performance.now() < stopByMs) {
      const { status, error, result } = await ask(sequence, action, key).catch(() => ({
        status: 503,
        error: undefined,
        result: undefined,
      }));
      if (status === 200) return result !== 'not_found' && result !== 'wrong_state';
      if (status < 500 && status !== 409 && status !== 429)
        throw new Error(`${action} was answered with ${status} ${error}`);
      await pause(AGAIN_MS);
    }
    return undefined;
  }

  async function parkAndSettle({ sequence, id }: Candidate): Promise<void> {
    const isDiscarded = random.chance(DISCARDED);
    const heldMs = random.whole(...HELD_MS);
    if ((await decide(sequence, 'park')) !== true) return;
    const entry: Parked = {
      eventId: id,
      parkedMs: performance.now(),
      settledMs: undefined,
      isDiscarded: false,
    };
    parked.push(entry);
    await Promise.race([pause(heldMs), stopping.promise]);
    if (!isDiscarded) entry.settledMs = performance.now();
    const isDone = await decide(sequence, isDiscarded ? 'discard' : 'retry');
    entry.isDiscarded = isDiscarded && isDone === true;
  }

  async function tick(): Promise<void> {
    const wanted = Math.min(random.whole(...AT_A_TIME), OPEN_MAX - open.size);
    const found = await world
      .query<Candidate>(PENDING, [Math.max(0, wanted)], QUERY_LIMIT_MS)
      .catch(() => []);
    for (const each of found) {
      if (open.has(each.sequence)) continue;
      open.set(
        each.sequence,
        parkAndSettle(each).finally(() => open.delete(each.sequence)),
      );
    }
  }

  async function run(): Promise<void> {
    while (!isStopping()) {
      await tick();
      await Promise.race([pause(random.whole(...TICK_MS)), stopping.promise]);
    }
    await Promise.all(open.values());
  }

  const running = run();
  running.catch(() => {}); // `stop` reports it
  return {
    parked,
    stop: async (limitMs) => {
      stopByMs = performance.now() + limitMs;
      stopping.resolve();
      await running;
    },
  };
}
