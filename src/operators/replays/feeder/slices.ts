// How many sequences one statement of a replay looks through for its events: as many as the database manages in time.

import type { RunningReplay } from '../next-events.queries.ts';

export type Slices = {
  /** The last sequence of the replay's next slice. */
  readonly end: (replay: RunningReplay) => string;
  /** The last slice was in time: the next one may be larger. */
  readonly grow: () => void;
  /** The last slice took too long. False if it was the smallest one: a smaller one would not help. */
  readonly halve: () => boolean;
};

/** At first and at most: a few milliseconds, also if none of them matches. */
const SIZE_MAX = 20_000;
const SIZE_MIN = 10;

export function createSlices(): Slices {
  let size = SIZE_MAX;
  return {
    end: ({ selection, cursor, upTo }) => {
      const end = BigInt(cursor) + BigInt(size);
      // A selection by ids has no slices: each id is one look-up, however far they are apart.
      return 'sequences' in selection || end > BigInt(upTo) ? upTo : String(end);
    },
    grow: () => {
      // Slowly, so that a filter that stays expensive does not time out in every other turn.
      size = Math.min(SIZE_MAX, size + Math.ceil(size / 8));
    },
    halve: () => {
      if (size === SIZE_MIN) return false;
      size = Math.max(SIZE_MIN, Math.floor(size / 2));
      return true;
    },
  };
}
