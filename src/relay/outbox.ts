// The outbox as the relay uses it: loads the entries that may be published now, and writes their results. Each write is one
// statement that may be repeated: if two relays believe for a moment that they lead, a message may get a second copy, but none is
// lost. The states of a live entry (copies.ts has those of replays' copies):
//
//   pending ──confirmed──▶ (deleted)
//      │ ▲ ╲──returned───▶ returned   no queue received it
//      │ └─ nacked, failed: due again after a while, attempts + 1
//      └──── attempts used up ─────▶ parked     later events of its job wait behind it
//
// An operator's `outbox retry` makes a returned or parked entry pending again (operators/decisions/retry.ts): the next
// load finds it and the relay publishes it. A replay publishes a copy instead, whose confirm deletes the returned entry.

import type { Publication } from './publisher.ts';
import { type DatabaseConnection, type OutboxDepth, readOutboxDepth } from '../ledger/index.ts';
import type { EntryEvent } from './cloud-event.ts';
import { LOAD_COPIES, SETTLE_COPIES } from './copies.ts';
import { LOAD, SETTLE } from './live-entries.ts';
import type { NextStep } from './next-step.ts';

export type Entry = EntryEvent & {
  /** Its key and place in the outbox, decimal digits. For a live entry it is its event's sequence. */
  readonly position: string;
  readonly attempts: number;
};

/** What one publish attempt changes in the outbox. `retryInMs` is 0 unless `next` is `retry`. */
export type Settlement = {
  readonly entry: Entry;
  readonly publication: Publication;
  readonly next: NextStep;
  readonly retryInMs: number;
};

export type Outbox = {
  /** The next publishable live entries, in order. */
  readonly load: (options: LoadOptions) => Promise<Entry[]>;
  /** The next publishable copies of the running replays, which take turns. */
  readonly loadCopies: (options: LoadOptions) => Promise<Entry[]>;
  /** Records the publications of live entries and moves these on, all or nothing. */
  readonly settle: (settlements: readonly Settlement[]) => Promise<void>;
  /** The same for copies, which it also counts in their replays. Waits for the locks of these replays. */
  readonly settleCopies: (settlements: readonly Settlement[]) => Promise<void>;
  readonly depth: () => Promise<OutboxDepth>;
};

/** At most `limit` entries and about `bytes` of data, but always one; none of the positions `except`, live or copies. */
type LoadOptions = { limit: number; bytes: number; except: readonly string[] };

const DETAIL_MAX_LENGTH = 300;

export function createOutbox(connection: DatabaseConnection, { relayId }: { relayId: string }): Outbox {
  return {
    load: ({ limit, bytes, except }) => connection.execute<Entry>(LOAD, [except, limit, bytes]),

    loadCopies: async ({ limit, bytes, except }) => {
      const rows = await connection.execute<CopyRow>(LOAD_COPIES, [except, limit, bytes]);
      return rows.map(({ replayId, replayedBy, queue, ...entry }) => ({
        ...entry,
        replay: { id: replayId, by: replayedBy, queue },
      }));
    },

    settle: async (settlements) => {
      await connection.execute(SETTLE, settledColumns(settlements, relayId));
    },

    settleCopies: async (settlements) => {
      await connection.execute(SETTLE_COPIES, [
        ...settledColumns(settlements, relayId),
        settlements.map(({ entry }) => entry.sequence),
        settlements.map(({ entry }) => entry.replay?.id),
        settlements.map(({ entry }) => entry.replay?.queue),
      ]);
    },

    depth: () => readOutboxDepth(connection.db, null),
  };
}

type CopyRow = Omit<Entry, 'replay'> & { replayId: string; replayedBy: string; queue: string | null };

function settledColumns(settlements: readonly Settlement[], relayId: string): unknown[] {
  return [
    settlements.map(({ entry }) => entry.position),
    settlements.map(({ entry }) => entry.attempts),
    settlements.map(({ next }) => next),
    settlements.map(({ retryInMs }) => retryInMs),
    settlements.map(({ publication }) => publication.result),
    settlements.map(({ publication }) =>
      publication.result === 'confirmed' ? null : publication.detail.slice(0, DETAIL_MAX_LENGTH),
    ),
    settlements.map(({ publication }) => Math.round(publication.durationMs)),
    settlements.map(({ entry }) => entry.source),
    relayId,
  ];
}
