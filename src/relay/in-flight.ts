// The entries that are at the broker: publishes the first one of each lane, as many as may be in flight.

import { describeError } from '../base/errors.ts';
import { toMessage } from './cloud-event.ts';
import type { Entry } from './entry.ts';
import type { Publication } from './publication.ts';
import type { Publisher } from './publisher.ts';
import type { Suspects } from './suspects.ts';
import type { Lane, Window } from './window.ts';

export type InFlight = {
  readonly count: () => number;
  /** Publishes for as long as it may. Returns how many entries. */
  readonly publishReady: () => number;
  /** The attempt does not count: the entry is published again when the broker is back. */
  readonly publishAgain: (lane: Lane, publication: Publication) => void;
};

const BROKER_PAUSE_MS = 200;

export function createInFlight(options: {
  window: Pick<Window, 'putBack' | 'forgettings'>;
  suspects: Suspects;
  publisher: Pick<Publisher, 'publish'>;
  limits: { readonly inFlight: number; readonly inFlightBytes: number };
  routingPrefix: string;
  /** Monotonic milliseconds. */
  now: () => number;
  /** Ask before each publish: this replica may have lost the lease. */
  mayPublish: () => boolean;
  /**
   * Of the first entry of the lane. `alone`: no other message was in flight. `isStale`: what waited in memory was forgotten while
   * it was on its way.
   */
  onResult: (lane: Lane, publication: Publication, how: { alone: boolean; isStale: boolean }) => void;
}): InFlight {
  const { window, suspects, publisher, limits, routingPrefix, now, mayPublish, onResult } = options;
  let count = 0;
  let bytes = 0;
  let pauseEndsMs = 0;

  function hasRoom(): boolean {
    return count < limits.inFlight && (count === 0 || bytes < limits.inFlightBytes) && now() >= pauseEndsMs;
  }

  function publishReady(): number {
    let published = 0;
    while (hasRoom() && mayPublish()) {
      const lane = suspects.take(count);
      if (lane === undefined) break;
      void publish(lane);
      published += 1;
    }
    return published;
  }

  async function publish(lane: Lane): Promise<void> {
    const entry = lane.entries[0] as Entry;
    const alone = suspects.has(entry);
    const before = window.forgettings();
    const size = entry.data.length;
    count += 1;
    bytes += size;
    const publication = await attempt(entry);
    count -= 1;
    bytes -= size;
    suspects.delete(entry);
    onResult(lane, publication, { alone, isStale: window.forgettings() !== before });
  }

  /** Never rejects: an entry that cannot be made into a message has failed. */
  async function attempt(entry: Entry): Promise<Publication> {
    if (entry.unreadable !== undefined) return failed(entry.unreadable);
    try {
      return await publisher.publish(toMessage(entry, routingPrefix));
    } catch (error) {
      return failed(describeError(error).message);
    }
  }

  return {
    count: () => count,
    publishReady,
    publishAgain: (lane, publication) => {
      const entry = lane.entries[0] as Entry;
      if (publication.result === 'failed' && publication.blame === 'unknown') suspects.add(entry);
      else pauseEndsMs = now() + BROKER_PAUSE_MS;
      window.putBack(lane);
    },
  };
}

const failed = (detail: string): Publication => ({ result: 'failed', detail, blame: 'event', durationMs: 0 });
