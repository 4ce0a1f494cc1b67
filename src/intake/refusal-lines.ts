// The log of refusals that get no line of their own: once a second, a line for each source that had any, with how many
// and from where. So a flood costs the log a line a second, and no refusal goes untold.

import type { Logger } from 'pino';
import { type AddressCounts, busiest, countAddress } from '../ledger/index.ts';

type Refused = {
  readonly source: string;
  readonly verdict: string;
  readonly httpStatus: number;
  readonly remoteAddress: string | null;
};

export type RefusalLines = {
  readonly count: (delivery: Refused) => void;
  /** Writes what is left and stops. */
  readonly close: () => void;
};

type Counts = {
  readonly outcomes: Record<string, number>;
  readonly statuses: Record<string, number>;
  readonly addresses: AddressCounts;
};

const LINE_INTERVAL_MS = 1_000;
/** Enough to see whether it is one, a few or many. */
const ADDRESSES_TOLD = 5;

export function createRefusalLines({ log }: { log: Logger }): RefusalLines {
  let sources = new Map<string, Counts>();

  function count({ source, verdict, httpStatus, remoteAddress }: Refused): void {
    const counts: Counts = sources.get(source) ?? { outcomes: {}, statuses: {}, addresses: new Map() };
    sources.set(source, counts);
    counts.outcomes[verdict] = (counts.outcomes[verdict] ?? 0) + 1;
    counts.statuses[httpStatus] = (counts.statuses[httpStatus] ?? 0) + 1;
    if (remoteAddress !== null) countAddress(counts.addresses, remoteAddress);
  }

  function write(): void {
    for (const [source, { outcomes, statuses, addresses }] of sources) {
      log.info(
        { source, outcomes, statuses, addresses: busiest(addresses, ADDRESSES_TOLD) },
        'more deliveries refused',
      );
    }
    sources = new Map();
  }

  const timer = setInterval(write, LINE_INTERVAL_MS).unref();
  return {
    count,
    close: () => {
      clearInterval(timer);
      write();
    },
  };
}
