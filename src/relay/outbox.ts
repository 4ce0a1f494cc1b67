// The outbox as the relay uses it: loads the entries that may be published now, and writes their results. An entry is in one of
// three places, each with a file of its own: in a batch with the other events of its write (pending.ts, batch-results.ts), held
// (held.ts), or a replay's copy (copies.ts). Each write may be repeated: if two relays believe for a moment that they lead, a
// message may get a second copy, but none is lost.

import type { DatabaseConnection } from '../ledger/index.ts';
import { settleWhole, takeOut } from './batch-results.ts';
import { loadCopies } from './copies.ts';
import { settleCopies } from './copy-results.ts';
import type { Attempt, Entry, Settlement } from './entry.ts';
import { createHeldLoads, settleHeld } from './held.ts';
import { createPendingLoads, type Loaded, type PendingLoad, readVersion } from './pending.ts';
import { recordMissing } from './publications.ts';
import type { Unwritten } from './results.ts';

/** At most `limit` entries and about `bytes` of content, but always one; none of the positions `except`. */
export type LoadOptions = {
  readonly limit: number;
  readonly bytes: number;
  readonly except: readonly string[];
};

export type Outbox = {
  /** How many connections were opened for rounds. If there are more, Postgres may have crashed, and have lost results. */
  readonly opened: () => number;
  /** It changes when an operator or a former leader decides about what the leader may have in memory (decisions.ts). */
  readonly version: () => Promise<string>;
  /** The same, beside a round: it does not wait for the round's statements. */
  readonly versionBeside: () => Promise<string>;
  readonly loadPending: (options: PendingLoad) => Promise<Loaded>;
  /** The next held events that are due, in order. Many that wait behind parked ones are passed over in several loads. */
  readonly loadHeld: (options: LoadOptions) => Promise<Entry[]>;
  /** The next publishable copies of the running replays, which take turns. */
  readonly loadCopies: (options: LoadOptions & { readonly horizon: string }) => Promise<Entry[]>;
  /** Records the publications of live entries and moves these on. */
  readonly settle: (results: Unwritten) => Promise<void>;
  /** The same for copies, which it also counts in their replays. Waits for the locks of these replays. */
  readonly settleCopies: (attempts: readonly Attempt[]) => Promise<void>;
};

/** Each part has connections of its own. */
export type OutboxConnections = {
  /** For the rounds alone: that it had to be opened again means something. */
  readonly rounds: Pick<DatabaseConnection, 'execute' | 'opened'>;
  /** For the results of confirmed events. Its writing may be 'repeatable'. */
  readonly results: Pick<DatabaseConnection, 'execute'>;
  /** For what runs beside a round. */
  readonly beside: DatabaseConnection;
};

export function createOutbox(
  { rounds, results, beside }: OutboxConnections,
  { relayId }: { relayId: string },
): Outbox {
  return {
    opened: rounds.opened,
    version: () => readVersion(rounds),
    versionBeside: () => readVersion(beside),
    loadPending: createPendingLoads(rounds),
    loadHeld: createHeldLoads(rounds),
    loadCopies: (options) => loadCopies(rounds, options),
    settle: async ({ single, whole, held }) => {
      // Batches are deleted whole once those are out of them that are not confirmed.
      const taken = single.filter(isOutcome);
      if (taken.length > 0) await takeOut(rounds, taken, relayId);
      if (whole.length > 0) await settleWhole({ results, rounds }, whole, relayId);
      const moved = held.filter(isOutcome);
      if (moved.length > 0) await settleHeld(rounds, moved, relayId);
      const kept = [...single, ...held].filter((settlement) => !isOutcome(settlement));
      if (kept.length > 0) await recordMissing(rounds, kept, relayId);
    },
    settleCopies: (attempts) => settleCopies(beside, attempts, relayId),
  };
}

/** Whether it changes its entry. An attempt that does not count is only recorded. */
const isOutcome = ({ next }: Settlement): boolean => next !== 'keep';
