// Events that were handed over and may not go yet: another writer recorded the job's delivery before, so an event of its may come
// first. They wait for a load that begins after their commit, which finds it.

import { jobKey } from '../ledger/index.ts';
import { type Entry, isBefore } from './entry.ts';

export type Gates = {
  /** What comes for this job from now on waits for the load with this number. */
  readonly close: (key: string, load: number) => void;
  /** @returns false if nothing keeps this entry from going */
  readonly add: (entry: Entry) => boolean;
  /** Whether entries of its job wait, or will. */
  readonly isClosedFor: (entry: Entry) => boolean;
  /** A load has found this entry, so it has found all that comes before it. @returns what may go now, ahead of it */
  readonly before: (entry: Entry) => Entry[];
  /** The load with this number has found all that there was. @returns what may go now */
  readonly open: (load: number) => Entry[];
  /** @returns what has waited */
  readonly clear: () => Entry[];
  readonly areOpen: () => boolean;
};

type Gate = { load: number; entries: Entry[] };

export function createGates(): Gates {
  const gates = new Map<string, Gate>();
  const gateOf = ({ source, jobId }: Entry) =>
    gates.size === 0 ? undefined : gates.get(jobKey(source, jobId));

  return {
    close: (key, load) => {
      const gate = gates.get(key);
      if (gate === undefined) gates.set(key, { load, entries: [] });
      else gate.load = load;
    },
    add: (entry) => {
      const gate = gateOf(entry);
      gate?.entries.push(entry);
      return gate !== undefined;
    },
    isClosedFor: (entry) => gateOf(entry) !== undefined,
    before: (entry) => {
      const gate = gateOf(entry);
      if (gate === undefined) return [];
      const earlier = gate.entries.filter(({ position }) => isBefore(position, entry.position));
      gate.entries = gate.entries.filter(({ position }) => !isBefore(position, entry.position));
      return earlier;
    },
    open: (load) =>
      [...gates].flatMap(([key, gate]) => {
        if (gate.load > load) return [];
        gates.delete(key);
        return gate.entries;
      }),
    clear: () => {
      const waiting = [...gates.values()].flatMap(({ entries }) => entries);
      gates.clear();
      return waiting;
    },
    areOpen: () => gates.size === 0,
  };
}
