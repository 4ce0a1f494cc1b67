// Finds the message that makes the broker close the channel. All that were in flight then are suspects, and each of them is
// published alone: if the channel is closed again, this message is the cause. Nothing else is published meanwhile.

import type { Entry } from './entry.ts';
import type { Lane, Window } from './window.ts';

export type Suspects = {
  /** It was in flight when the broker closed the channel because of a message. */
  readonly add: (entry: Entry) => void;
  readonly has: (entry: Entry) => boolean;
  /** It has been published alone. */
  readonly delete: (entry: Entry) => void;
  /**
   * Takes the next lane to publish from: that of a suspect, while there are some.
   * @param inFlight how many messages are in flight
   */
  readonly take: (inFlight: number) => Lane | undefined;
  /** What waits in memory has left it: a suspect that is not there may come again. */
  readonly onForgotten: () => void;
  /** A load has found what there is room for, copies included. */
  readonly onLoaded: () => void;
};

export function createSuspects(window: Pick<Window, 'take'>): Suspects {
  const positions = new Set<string>();
  let isReadAnew = true; // since entries were last forgotten, a load has found what there is room for

  return {
    add: ({ position }) => positions.add(position),
    has: ({ position }) => positions.has(position),
    delete: ({ position }) => positions.delete(position),
    take: (inFlight) => {
      if (positions.size === 0) return window.take();
      if (inFlight > 0) return undefined;
      const lane = window.take(({ position }) => positions.has(position));
      if (lane !== undefined || !isReadAnew) return lane;
      positions.clear(); // the rest are not there any more: they wait for a retry, or for an operator
      return window.take();
    },
    onForgotten: () => {
      isReadAnew = false;
    },
    onLoaded: () => {
      isReadAnew = true;
    },
  };
}
