// Events that were handed over and may not go yet: another writer recorded the job's delivery before (R3). They wait for a load
// that begins after that (R7).

import { jobKey } from '../ledger/index.ts';
import { type Entry, isBefore } from './entry.ts';

export type Gates = {
  /** What comes for this job from now on waits for the load with this number. The numbers grow. */
  readonly close: (key: string, load: number) => void;
  /** @returns false if nothing keeps this entry from going */
  readonly add: (entry: Entry) => boolean;
  /** A load has found this entry, so it has found all that comes before it (R8). @returns what may go now, ahead of it */
  readonly before: (entry: Entry) => Entry[];
  /** The load with this number has found all that there was. @returns what may go now */
  readonly open: (load: number) => Entry[];
  /** The gate stays. @returns what has waited for this job */
  readonly take: (key: string) => Entry[];
  /** @returns what has waited */
  readonly clear: () => Entry[];
  readonly areOpen: () => boolean;
};

type Waiting = { readonly entry: Entry; readonly load: number };
/** `load` is that of the next entry. Others may wait for an earlier one: a job that two replicas record in turns goes on. */
type Gate = { load: number; waiting: Waiting[] };

const entryOf = ({ entry }: Waiting): Entry => entry;

/** Removes those that match, and returns their entries. */
function takeFrom(gate: Gate, matches: (waiting: Waiting) => boolean): Entry[] {
  const taken = gate.waiting.filter(matches);
  gate.waiting = gate.waiting.filter((each) => !matches(each));
  return taken.map(entryOf);
}

export function createGates(): Gates {
  const gates = new Map<string, Gate>();
  const gateOf = ({ source, jobId }: Entry) =>
    gates.size === 0 ? undefined : gates.get(jobKey(source, jobId));

  return {
    close: (key, load) => {
      const gate = gates.get(key);
      if (gate === undefined) gates.set(key, { load, waiting: [] });
      else gate.load = load;
    },
    add: (entry) => {
      const gate = gateOf(entry);
      gate?.waiting.push({ entry, load: gate.load });
      return gate !== undefined;
    },
    before: (entry) => {
      const gate = gateOf(entry);
      if (gate === undefined) return [];
      return takeFrom(gate, (each) => isBefore(each.entry.position, entry.position));
    },
    open: (load) =>
      [...gates].flatMap(([key, gate]) => {
        if (gate.load <= load) gates.delete(key);
        return takeFrom(gate, (each) => each.load <= load);
      }),
    take: (key) => {
      const gate = gates.get(key);
      return gate === undefined ? [] : takeFrom(gate, () => true);
    },
    clear: () => {
      const all = [...gates.values()].flatMap(({ waiting }) => waiting.map(entryOf));
      gates.clear();
      return all;
    },
    areOpen: () => gates.size === 0,
  };
}
