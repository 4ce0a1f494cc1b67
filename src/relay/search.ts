// Looks for what waits in the outbox, and says whether what was found is to be trusted. What operators have decided is read before
// (R22). The rules are those of docs/relay.md.

import { type Entry, isBefore } from './entry.ts';
import type { HandOff } from './hand-off.ts';
import type { Outbox } from './outbox.ts';
import type { Loaded } from './pending.ts';
import type { Window } from './window.ts';

export type Found = {
  /** Without what is handed over. In the order of their sequences, as those that are held. */
  readonly pending: Loaded;
  readonly held: readonly Entry[];
  /** In the order of their turns: replays take turns. */
  readonly copies: readonly Entry[];
};

/** How much is wanted: entries, and bytes of bodies. */
type Limit = { readonly limit: number; readonly bytes: number };

export type Wanted = {
  readonly live: Limit;
  /** Undefined if none are wanted. */
  readonly copies: Limit | undefined;
  /** What ended before this transaction is in memory or published; undefined if nothing is known. */
  readonly since: string | undefined;
  /** The first event that the last load has left in the outbox. Copies at this position or behind it are not wanted. */
  readonly horizon: string;
};

export type Search = {
  /**
   * @returns `lost` if Postgres may have lost something that it had committed, so that all is to be looked for again; `later` if
   * something may be committed of which nobody knows, or nothing may be published any more
   */
  readonly find: (wanted: Wanted) => Promise<Found | 'lost' | 'later'>;
  /**
   * Whether a write has failed, since this was asked last, that may be committed. It may be older than what is looked for.
   */
  readonly isUnknownNew: () => boolean;
};

export function createSearch(options: {
  outbox: Pick<Outbox, 'opened' | 'loadPending' | 'loadHeld' | 'loadCopies'>;
  window: Pick<Window, 'positions' | 'inBatches'>;
  handOff: Pick<HandOff, 'next' | 'inFlight' | 'answered' | 'unknown'>;
  isOpen: () => boolean;
  isStopped: (replayId: string) => boolean;
}): Search {
  const { outbox, window, handOff, isOpen, isStopped } = options;
  let unknown = handOff.unknown(); // when it was looked at last
  let opened = outbox.opened(); // when the last search had read

  function isUnknownNew(): boolean {
    const before = unknown;
    unknown = handOff.unknown();
    return unknown !== before;
  }

  function isOpenedAnew(): boolean {
    const before = opened;
    opened = outbox.opened();
    return opened !== before;
  }

  async function findCopies(left: Limit, horizon: string): Promise<Entry[]> {
    const found = await outbox.loadCopies({ ...left, except: window.positions(), horizon });
    return found.filter(({ replay }) => !isStopped(replay?.id ?? ''));
  }

  async function find({ live, copies: wanted, since, horizon }: Wanted): Promise<Found | 'lost' | 'later'> {
    const next = handOff.next();
    const inFlight = handOff.inFlight();
    // The batches last (R12). Writes without an answer are left out (R19).
    const copies = wanted === undefined ? [] : await findCopies(wanted, horizon);
    const held = await outbox.loadHeld({ ...live, except: window.positions() });
    const pending = await outbox.loadPending({ ...live, since, except: window.inBatches(), inFlight });
    const openedAnew = isOpenedAnew();
    if (pending.found.length + held.length + copies.length > 0) await handOff.answered(); // R10
    if (isUnknownNew() || !isOpen()) return 'later'; // R16
    // R18. After a failover, numbers of transactions come again. A crash ends all connections, and loses results, whose commits do
    // not wait for the disk.
    if (since !== undefined && (isBefore(pending.xid, since) || openedAnew)) return 'lost';
    // What this replica has written since is handed over (R20).
    const isOthers = ({ mark }: Loaded['found'][number]) =>
      mark?.writer !== next.writer || mark.number < next.number;
    return { pending: { ...pending, found: pending.found.filter(isOthers) }, held, copies };
  }

  return { find, isUnknownNew };
}
