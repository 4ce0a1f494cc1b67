// The results of publish attempts, until they are written. A batch whose events are all confirmed is written whole; the others
// one by one. A write begins when most of what is on its way has its result, so that writes grow with the load, without a clock.

import { createLinkedList } from '../base/collections/linked-list.ts';
import type { Batch } from './batch.ts';
import type { Entry, Settlement } from './entry.ts';

/** What one round writes, in this order. */
export type Unwritten = {
  /** Events that are taken out of their batches, and attempts that do not count. */
  readonly single: readonly Settlement[];
  readonly whole: readonly Batch[];
  readonly held: readonly Settlement[];
};

export type Results = {
  /** Of a live entry. One with `keep` is only recorded: the entry still has no result. */
  readonly add: (settlement: Settlement) => void;
  /** Takes what can be written now. Undefined if there is nothing. */
  readonly take: () => Unwritten | undefined;
  /** It could not be written: it comes first the next time. */
  readonly putBack: (unwritten: Unwritten) => void;
  /** Confirmed events do not wait any longer for the others of their batches. */
  readonly split: () => void;
  /** Whether a write is worth its statement. `writing`: deliveries whose events will be handed over soon. */
  readonly isDue: (inFlight: number, writing: number) => boolean;
  /** Results that are not written. */
  readonly size: () => number;
};

/**
 * A write costs its statement, whatever its size, and nobody waits for the results of confirmed events. So it waits while more
 * come: until there are this many times as many as are coming. For other results the rest of the job waits.
 */
const RESULTS_PER_COMING = 4;
/**
 * So many are worth a statement in any case. A crash publishes these again, those of batches that are not whole, and what is in
 * flight.
 */
const RESULTS_MAX = 256;

export function createResults(): Results {
  const incomplete = createLinkedList<Batch>(); // with a confirmed event
  let single: Settlement[] = [];
  let whole: Batch[] = [];
  let held: Settlement[] = [];
  let confirmed = 0; // in whole batches

  function addOfBatch(batch: Batch, settlement: Settlement): void {
    if (batch.settle(settlement)) incomplete.add(batch);
    else single.push(settlement);
    if (!batch.isDone()) return;
    incomplete.delete(batch);
    whole.push(batch);
    confirmed += batch.confirmed().length;
  }

  return {
    add: (settlement) => {
      const { batch } = settlement.entry;
      if (batch === undefined) held.push(settlement);
      else if (settlement.next === 'keep') single.push(settlement);
      else addOfBatch(batch, settlement);
    },
    take: () => {
      if (single.length + whole.length + held.length === 0) return undefined;
      const taken = { single, whole, held };
      single = [];
      whole = [];
      held = [];
      confirmed = 0;
      return taken;
    },
    putBack: (unwritten) => {
      single = [...unwritten.single, ...single];
      whole = [...unwritten.whole, ...whole];
      held = [...unwritten.held, ...held];
      confirmed = whole.reduce((sum, batch) => sum + batch.confirmed().length, 0);
    },
    split: () => {
      for (const batch of incomplete) {
        incomplete.delete(batch);
        batch.split();
        single.push(...batch.takeConfirmed());
      }
    },
    isDue: (inFlight, writing) => {
      const coming = single.length + held.length > 0 ? inFlight : inFlight + writing;
      const ready = single.length + held.length + confirmed;
      return ready > 0 && ready >= Math.min(RESULTS_MAX, RESULTS_PER_COMING * coming);
    },
    size: () => {
      let waiting = 0;
      for (const batch of incomplete) waiting += batch.confirmed().length;
      return single.length + held.length + confirmed + waiting;
    },
  };
}

/** The entries that have their result once this is written. */
export function entriesOf({ single, whole, held }: Unwritten): Entry[] {
  return [...single, ...whole.flatMap((batch) => batch.confirmed()), ...held].flatMap(({ entry, next }) =>
    next === 'keep' ? [] : entry,
  );
}
