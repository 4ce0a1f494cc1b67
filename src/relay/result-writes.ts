// Writes the results of live entries, in the rounds. Those of replays' copies are written beside them (copy-writes.ts).

import { jobKey } from '../ledger/index.ts';
import { isDelay } from './entry.ts';
import type { HandOff } from './hand-off.ts';
import type { Outbox } from './outbox.ts';
import { entriesOf, type Results, type Unwritten } from './results.ts';
import type { Window } from './window.ts';

export type ResultWrites = {
  /**
   * Writes what there is, but for events whose batch is not complete (results.ts). They stay in memory until that is committed
   * (R37). After an error they are written again the next time (R39). Returns how many entries.
   */
  readonly write: () => Promise<number>;
  /**
   * The jobs whose lanes may be reopened since this was called last, since writes that began before have their answers. A job
   * comes once for each of its results: its lane is to be reopened as often.
   */
  readonly takeAnswered: () => string[];
};

/** Confirmed events wait no longer than this for the others of their write. */
const SPLIT_MS = 1_000;

export function createResultWrites(options: {
  outbox: Pick<Outbox, 'settle'>;
  results: Results;
  window: Window;
  handOff: Pick<HandOff, 'answered'>;
  /** Monotonic milliseconds. */
  now: () => number;
  /** This replica leads and does not stop: the other results of a batch are still to come. */
  isLasting: () => boolean;
  onWritten: () => void;
}): ResultWrites {
  const { outbox, results, window, handOff, now, isLasting, onWritten } = options;
  let answered: string[] = [];
  let splitAtMs = now() + SPLIT_MS;

  /**
   * From now on the ledger itself holds new events of these jobs. Lanes wait for the writes that are in flight now (R33), and are
   * reopened by the next round, while no load runs that keeps such an event back.
   */
  function reopenLanes({ single, held }: Unwritten): void {
    const keys = [...single, ...held].filter(isDelay).map(({ entry }) => jobKey(entry.source, entry.jobId));
    if (keys.length > 0) void handOff.answered().then(() => answered.push(...keys));
  }

  async function write(): Promise<number> {
    if (now() >= splitAtMs || !isLasting()) {
      splitAtMs = now() + SPLIT_MS;
      results.split();
    }
    const unwritten = results.take();
    if (unwritten === undefined) return 0;
    try {
      await outbox.settle(unwritten);
    } catch (error) {
      results.putBack(unwritten);
      throw error;
    }
    const entries = entriesOf(unwritten);
    for (const entry of entries) window.forget(entry);
    reopenLanes(unwritten);
    onWritten();
    return entries.length;
  }

  return {
    write,
    takeAnswered: () => {
      const taken = answered;
      answered = [];
      return taken;
    },
  };
}
