// Traces refused deliveries without letting strangers fill the ledger or the log. So many per minute and source have an audit row
// and a log line of their own. All others are counted: in the ledger by the minute, and in the log by a line a second and source.
// Answers never wait for a trace, so neither their time nor their success tells whether the claimed source exists.

import type { Logger } from 'pino';
import { describeError } from '../base/errors.ts';
import {
  type AddressCounts,
  busiest,
  countAddress,
  type DeliveryRecord,
  type RefusalCount,
} from '../ledger/index.ts';
import type { BatchWriter } from './batch-writer.ts';

export type RefusedDelivery = DeliveryRecord & { readonly outcome: 'unauthorized' | 'refused' };

/** `counted`: the delivery is in the counts of its source only, in the ledger and in the log. */
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

  function count(source: string, outcome: RefusedDelivery['outcome'], by = 1): void {
    const entry = counts.get(source) ?? { unauthorized: 0, refused: 0 };
    entry[outcome] += by;
    counts.set(source, entry);
  }

  function trace(delivery: RefusedDelivery): RefusalTrace {
    const { source, outcome } = delivery;
    if (!mayHaveRow(source)) {
      count(source, outcome);
      lines.count(delivery);
      return 'counted';
    }
    writer.submit(delivery, now() + patienceMs).catch(() => count(source, outcome));
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

type SourceCounts = {
  readonly outcomes: Record<string, number>;
  readonly statuses: Record<string, number>;
  readonly addresses: AddressCounts;
};

const LINE_INTERVAL_MS = 1_000;
/** Enough to see whether it is one sender, a few or many. */
const ADDRESSES_LOGGED = 5;

/** Each second a line for each source that had counted refusals: how many, and from where. */
function createRefusalLines({ log }: { log: Logger }) {
  let sources = new Map<string, SourceCounts>();

  function count({ source, outcome, httpStatus, remoteAddress }: RefusedDelivery): void {
    const counts: SourceCounts = sources.get(source) ?? { outcomes: {}, statuses: {}, addresses: new Map() };
    sources.set(source, counts);
    counts.outcomes[outcome] = (counts.outcomes[outcome] ?? 0) + 1;
    counts.statuses[httpStatus] = (counts.statuses[httpStatus] ?? 0) + 1;
    if (remoteAddress !== null) countAddress(counts.addresses, remoteAddress);
  }

  function write(): void {
    for (const [source, { outcomes, statuses, addresses }] of sources) {
      log.info(
        { source, outcomes, statuses, addresses: busiest(addresses, ADDRESSES_LOGGED) },
        'more deliveries refused',
      );
    }
    sources = new Map();
  }

  const timer = setInterval(write, LINE_INTERVAL_MS).unref();
  return {
    count,
    /** Writes the last lines and stops. */
    close: () => {
      clearInterval(timer);
      write();
    },
  };
}
