// Which faults strike, when and for how long: drawn from the seed alone. Each fault strikes alone once before any does so
// again; after every two of these, two or three strike together and overlap.

import { type Fault, MIGRATION, type Subject } from './faults/index.ts';
import type { Random } from './random.ts';

export type PlannedFault = {
  readonly fault: Fault;
  /** From the start of its episode. */
  readonly atMs: number;
  readonly forMs: number;
  readonly random: Random;
};

/** Faults that strike together. Everything must have recovered before the next episode. */
export type PlannedEpisode = {
  readonly number: number;
  /** The quiet time before it. */
  readonly gapMs: number;
  readonly faults: readonly PlannedFault[];
};

const GAP_MS = [500, 2_500] as const;
/** Sometimes above the answer deadline of 5 s, always below the sender's 10 s. Faults with `durationMs` last longer. */
const DURATION_MS = [400, 7_000] as const;
const OFFSET_MS = [0, 2_500] as const;
const TOGETHER = [2, 3] as const;
const ALONE_BETWEEN = 2;

/** For so long senders find no replica. */
const BEFORE_MIGRATION_MS = 500;

/** The replicas start and migrate first. */
export function* planRun(random: Random, faults: readonly Fault[], pace = 1): Generator<PlannedEpisode> {
  const draw = random.fork('migration');
  yield {
    number: 0,
    gapMs: 0,
    faults: [{ fault: MIGRATION, atMs: 0, forMs: BEFORE_MIGRATION_MS, random: draw }],
  };
  yield* planEpisodes(random, faults, pace);
}

/** Endless, and the same for the same random and faults. `pace` below 1 makes all times shorter by this factor. */
export function* planEpisodes(random: Random, faults: readonly Fault[], pace = 1): Generator<PlannedEpisode> {
  const sociable = faults.filter(({ isAlone }) => isAlone !== true);
  const subjects = new Set(sociable.map(({ subject }) => subject));
  let deck: Fault[] = [];
  for (let number = 1; ; number++) {
    const draw = random.fork(`episode ${number}`);
    const isTogether = subjects.size > 1 && number % (ALONE_BETWEEN + 1) === 0;
    if (deck.length === 0) deck = random.fork(`deck ${number}`).shuffled(faults);
    const struck = isTogether ? drawTogether(draw, sociable) : [deck.shift() as Fault];
    yield {
      number,
      gapMs: pace * draw.whole(...GAP_MS),
      faults: struck.map((fault, index) => ({
        fault,
        atMs: index === 0 ? 0 : pace * draw.whole(...OFFSET_MS),
        forMs:
          fault.durationMs === undefined
            ? pace * draw.whole(...DURATION_MS)
            : draw.whole(...fault.durationMs),
        random: draw.fork(fault.name),
      })),
    };
  }
}

function drawTogether(random: Random, faults: readonly Fault[]): Fault[] {
  const wanted = random.whole(...TOGETHER);
  const taken = new Map<Subject, Fault>();
  for (const fault of random.shuffled(faults)) {
    if (!taken.has(fault.subject)) taken.set(fault.subject, fault);
    if (taken.size === wanted) break;
  }
  return [...taken.values()];
}
