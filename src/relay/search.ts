// Looks for what waits in the outbox, and says whether what was found is to be trusted. The rules are those of docs/relay.md.

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
  /**
   * Nothing was decided since the version was read. Otherwise only what was found in batches is there, and the outbox may have more
   * (R24).
   */
  readonly isAsDecided: boolean;
};

/** How much is wanted: entries, and bytes of bodies. */
type Limit = { readonly limit: number; readonly bytes: number };

export type Wanted = {
  /** Of what is decided, as it was read before (R22). */
  readonly version: string;
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
  const isUnknownNew = changeOf(handOff.unknown);
  const isOpenedAnew = changeOf(outbox.opened);

  async function findCopies(left: Limit, horizon: string): Promise<Entry[]> {
    const found = await outbox.loadCopies({ ...left, except: window.positions(), horizon });
    return found.filter(({ replay }) => !isStopped(replay?.id ?? ''));
  }

  async function find(wanted: Wanted): Promise<Found | 'lost' | 'later'> {
    const { version, live, since, horizon } = wanted;
    const next = handOff.next();
    const inFlight = handOff.inFlight();
    // The batches last (R12). Writes without an answer are left out (R19).
    const copies = wanted.copies === undefined ? [] : await findCopies(wanted.copies, horizon);
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
    const others = { ...pending, found: pending.found.filter(isOthers) };
    if (pending.version !== version) return { pending: others, held: [], copies: [], isAsDecided: false };
    return { pending: others, held, copies, isAsDecided: true };
  }

  return { find, isUnknownNew };
}

/** Tells whether the count is another one than when this was asked last. */
function changeOf(count: () => number): () => boolean {
  let before = count();
  return () => {
    const now = count();
    const isChanged = now !== before;
    before = now;
    return isChanged;
  };
}
