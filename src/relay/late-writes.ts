// What is handed over while a load runs. After the load, what is not behind an event that the load has left goes on from memory.

import { type Entry, isBefore } from './entry.ts';
import type { Written } from './hand-off.ts';

export type LateWrites = {
  /** @returns false if there is no room for it, or if the load cannot catch up any more */
  readonly add: (written: Written) => boolean;
  readonly take: () => Written[];
  /** This entry is not in memory: it is left to a later load. */
  readonly miss: (entry: Entry) => void;
  /** The position of the first entry that was missed. */
  readonly missed: () => string | undefined;
  /** Something left memory that the load may not find, so it does not catch up (R15). @returns what was added */
  readonly tear: () => Entry[];
  readonly isTorn: () => boolean;
};

/** @param room how many entries and bytes may wait here; the last write that was added may go beyond */
export function createLateWrites(room: { readonly entries: number; readonly bytes: number }): LateWrites {
  let writes: Written[] = [];
  let entries = 0;
  let bytes = 0;
  let missed: string | undefined;
  let isTorn = false;

  function take(): Written[] {
    const taken = writes;
    writes = [];
    return taken;
  }

  return {
    add: (written) => {
      if (isTorn || entries >= room.entries || bytes >= room.bytes) return false;
      writes.push(written);
      entries += written.entries.length;
      for (const { data } of written.entries) bytes += data.length;
      return true;
    },
    take,
    miss: ({ position }) => {
      if (missed === undefined || isBefore(position, missed)) missed = position;
    },
    missed: () => missed,
    tear: () => {
      isTorn = true;
      return take().flatMap((written) => written.entries);
    },
    isTorn: () => isTorn,
  };
}
