// What is handed over while a load runs that can catch up. After the load, what is not behind an event that the load has left
// goes on from memory.

import type { Written } from './hand-off.ts';

export type LateWrites = {
  /** @returns false if there is no room for it */
  readonly add: (written: Written) => boolean;
  readonly take: () => Written[];
};

/** @param room how many entries and bytes may wait here; the last write that was added may go beyond */
export function createLateWrites(room: { readonly entries: number; readonly bytes: number }): LateWrites {
  let writes: Written[] = [];
  let entries = 0;
  let bytes = 0;

  return {
    add: (written) => {
      if (entries >= room.entries || bytes >= room.bytes) return false;
      writes.push(written);
      entries += written.entries.length;
      for (const { data } of written.entries) bytes += data.length;
      return true;
    },
    take: () => {
      const taken = writes;
      writes = [];
      return taken;
    },
  };
}
