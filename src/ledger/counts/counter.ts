// Counts in memory between flushes, so that counting costs a delivery almost nothing and no round trip. Memory is bounded. A
// crash may lose the last seconds of the counts, never a delivery. What a flush cannot write stays for the next one.

import type { Logger } from 'pino';
import { describeError } from '../../base/errors.ts';

export type Counter<Row> = {
  /** Adds the row to the one kept under `key`. At the limit a new key is dropped, and the log says how many were. */
  readonly add: (key: string, row: Row) => void;
  /** Writes all rows. Never rejects. */
  readonly flush: () => Promise<void>;
  /** Writes the last rows and stops. */
  readonly close: () => Promise<void>;
};

/** How old statistics may be. A shorter interval means more writes on every replica. */
export const FLUSH_INTERVAL_MS = 10_000;

export function createCounter<Row>(options: {
  /** For the log. */
  name: string;
  /** Adds `from` to `into`. */
  merge: (into: Row, from: Row) => void;
  /** Writes the rows. When it rejects, it is called again with the same rows and new ones. */
  write: (rows: Row[]) => Promise<void>;
  /** The most rows of one group that are kept. */
  rowsPerGroup: number;
  groupOf: (row: Row) => string;
  /** Different from that of other counters, so that they do not all write at once. Later flushes keep the distance. */
  firstFlushMs?: number | undefined;
  log: Logger;
}): Counter<Row> {
  const { name, merge, write, rowsPerGroup, groupOf, firstFlushMs = FLUSH_INTERVAL_MS, log } = options;
  let rows = new Map<string, Row>();
  let groups = new Map<string, number>();
  let dropped = 0;

  function add(key: string, row: Row): void {
    const kept = rows.get(key);
    if (kept !== undefined) return merge(kept, row);
    const group = groupOf(row);
    const size = groups.get(group) ?? 0;
    if (size >= rowsPerGroup) {
      dropped += 1;
      return;
    }
    groups.set(group, size + 1);
    rows.set(key, row);
  }

  async function flushNow({ isLast }: { isLast: boolean }): Promise<void> {
    const flushed = rows;
    if (flushed.size === 0) return;
    rows = new Map();
    groups = new Map();
    try {
      await write([...flushed.values()]);
    } catch (error) {
      const fields = { err: describeError(error), tally: name };
      if (isLast) log.warn({ ...fields, rows: flushed.size }, 'the last counts are lost');
      else log.warn(fields, 'counts stay in memory for now');
      for (const [key, row] of flushed) add(key, row);
    }
    if (dropped > 0) log.warn({ tally: name, dropped }, 'counts were dropped: too many different ones');
    dropped = 0;
  }

  let flushing = Promise.resolve();
  const flush = ({ isLast = false } = {}) => {
    flushing = flushing.then(() => flushNow({ isLast }));
    return flushing;
  };
  const flushAndRepeat = () => {
    void flush();
    timer = setTimeout(flushAndRepeat, FLUSH_INTERVAL_MS).unref();
  };
  let timer = setTimeout(flushAndRepeat, firstFlushMs).unref();

  return {
    add,
    flush: () => flush(),
    close: () => {
      clearTimeout(timer);
      return flush({ isLast: true });
    },
  };
}
