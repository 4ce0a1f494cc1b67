// Keeps a trace of what was refused without letting strangers fill the ledger: so many audit rows a minute
// and source, and past that only counts; the log follows the same allowance, so that both tell the same. Answers
// never wait for a trace, so that neither their time nor their success tells whether the claimed source exists.

import type { Logger } from 'pino';
import { describeError } from '../errors.ts';
import type { DeliveryRecord, RefusalCount } from '../ledger/index.ts';
import type { BatchWriter } from './batch-writer.ts';
import { createRefusalLines } from './refusal-lines.ts';

export type RefusedDelivery = DeliveryRecord & { readonly verdict: 'unauthorized' | 'refused' };

/** `counted`: the refusal is in the counts of its source alone, in the ledger and in the log. */
export type RefusalTrace = 'row' | 'counted';

export type RefusalLog = {
  /** Returns at once. The row is written soon, or counted when it cannot be; the line of a `row` is the caller's. */
  readonly trace: (delivery: RefusedDelivery) => RefusalTrace;
  /** Writes the counts so far and stops. */
  readonly close: () => Promise<void>;
};

const MINUTE_MS = 60_000;
const FLUSH_INTERVAL_MS = 2_000;

export function createRefusalLog(options: {
  writer: BatchWriter;
  addRefusals: (counts: readonly RefusalCount[]) => Promise<void>;
  rowsPerMinute: number;
  /** How long a trace may wait for its write before it is only counted. */
  patienceMs: number;
  /** Monotonic milliseconds. */
  now: () => number;
  log: Logger;
}): RefusalLog {
  const { writer, addRefusals, rowsPerMinute, patienceMs, now, log } = options;
  const lines = createRefusalLines({ log });
  let counts = new Map<string, { unauthorized: number; refused: number }>();
  let rows = new Map<string, number>();
  let minuteEndsMs = now() + MINUTE_MS;

  function mayHaveRow(source: string): boolean {
    if (now() >= minuteEndsMs) {
      rows = new Map();
      minuteEndsMs = now() + MINUTE_MS;
    }
    const used = rows.get(source) ?? 0;
    if (used >= rowsPerMinute) return false;
    rows.set(source, used + 1);
    return true;
  }

  function count(source: string, verdict: 'unauthorized' | 'refused', by = 1): void {
    const entry = counts.get(source) ?? { unauthorized: 0, refused: 0 };
    entry[verdict] += by;
    counts.set(source, entry);
  }

  function trace(delivery: RefusedDelivery): RefusalTrace {
    const { source, verdict } = delivery;
    if (!mayHaveRow(source)) {
      count(source, verdict);
      lines.count(delivery);
      return 'counted';
    }
    writer.submit(delivery, now() + patienceMs).catch(() => count(source, verdict));
    return 'row';
  }

  async function flush(): Promise<void> {
    const flushed = counts;
    if (flushed.size === 0) return;
    counts = new Map();
    try {
      await addRefusals(Array.from(flushed, ([source, entry]) => ({ source, ...entry })));
    } catch (error) {
      log.warn({ err: describeError(error) }, 'refusal counts stay in memory for now');
      for (const [source, entry] of flushed) {
        count(source, 'unauthorized', entry.unauthorized);
        count(source, 'refused', entry.refused);
      }
    }
  }

  let flushing = Promise.resolve();
  const timer = setInterval(() => {
    flushing = flushing.then(flush);
  }, FLUSH_INTERVAL_MS).unref();

  return {
    trace,
    close: async () => {
      clearInterval(timer);
      lines.close();
      await writer.drained();
      await flushing.then(flush);
    },
  };
}
