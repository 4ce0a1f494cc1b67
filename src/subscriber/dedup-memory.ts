// A dedup store in the memory of this process. It drops the copies that come after a lost connection. It knows nothing after a
// restart, and nothing of other processes.

import { createRecentIds } from '../base/collections/recent-ids.ts';
import { type DedupStore, refuseUnknown } from './dedup.ts';

/** Above what a consumer has unacknowledged, and what a relay has in flight. About a megabyte. */
const IDS_MAX = 10_000;

/** @param idsMax beyond it the oldest ids are forgotten. Default: 10,000. */
export function memoryDedup(options: { readonly idsMax?: number } = {}): DedupStore {
  const { idsMax = IDS_MAX, ...unknown } = options;
  refuseUnknown('memoryDedup', unknown);
  if (!Number.isSafeInteger(idsMax) || idsMax < 1)
    throw new TypeError('idsMax must be a whole number from 1');
  const done = createRecentIds(idsMax);
  const inWork = new Map<string, Promise<unknown>>();
  return {
    once: async (id, effect, { queue }) => {
      const key = `${queue} ${id}`;
      while (inWork.has(key)) await inWork.get(key)?.catch(() => {});
      if (done.has(key)) return 'duplicate';
      const working = effect(undefined);
      inWork.set(key, working);
      try {
        await working;
        done.add(key);
        return 'done';
      } finally {
        inWork.delete(key);
      }
    },
  };
}
