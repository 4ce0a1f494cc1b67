// How entries come into the window: handed over by the intake after their commit (late-writes.ts, gates.ts), or loaded from the
// outbox (search.ts).
//
// The order of a job's events (guarantee 5) depends on the rules of docs/relay.md.

import type { Decisions } from './decisions.ts';
import { type Entry, isBefore } from './entry.ts';
import { createGates } from './gates.ts';
import type { HandOff, Written } from './hand-off.ts';
import { createLateWrites, type LateWrites } from './late-writes.ts';
import type { Outbox } from './outbox.ts';
import { createSearch, type Found } from './search.ts';
import type { Window } from './window.ts';

/** How much may be in memory. */
export type Room = { readonly entries: number; readonly bytes: number };

export type Arrivals = {
  /** Loads what there is room for, and lets it take its place. Returns how many entries. */
  readonly load: (options: { readonly copies: boolean }) => Promise<number>;
  /** Whether a load would find something that must not wait for the next poll. */
  readonly isDue: () => boolean;
  /** Whether what is handed over goes on from memory now. */
  readonly takes: () => boolean;
  /** Whether there is much to publish here already: most of the room is taken, or the outbox has more than is in memory. */
  readonly isFull: () => boolean;
  /** What was held of this job is written. To be called once for each, and not while a load runs. */
  readonly reopen: (key: string) => void;
  /** All that waits in memory leaves it: this replica does not lead, or an operator has decided about some of it. */
  readonly forget: () => void;
};

/** The outbox may have events that are not in memory. What is handed over is left to later loads. */
type Behind = {
  readonly is: 'behind';
  /** The position of the first event that was handed over since the relay fell behind, or waited for a load then. */
  readonly missed: string | undefined;
};
/** The same, but a load runs that can catch up. What is handed over waits for its end. */
type Loading = { readonly is: 'loading'; readonly late: LateWrites };
/**
 * A load has found all that there was. What is handed over goes at once (R6), and loads find what others write. What ended before
 * the transaction `since` is in memory or published.
 */
type CaughtUp = { readonly is: 'caughtUp'; readonly since: string };
type State = Behind | Loading | CaughtUp;

/** Behind all sequences. */
const END = String(2n ** 63n - 1n);

export function createArrivals(options: {
  outbox: Pick<Outbox, 'opened' | 'version' | 'loadPending' | 'loadHeld' | 'loadCopies'>;
  window: Window;
  handOff: Omit<HandOff, 'write'>;
  decisions: Pick<Decisions, 'ask' | 'note' | 'onNew'>;
  /** Of live entries, and of copies. */
  room: { readonly live: Room; readonly copies: Room };
  /** Whether entries may be published, so that it makes sense to have them in memory. */
  isOpen: () => boolean;
  /** Copies of this replay are not wanted now. */
  isStopped: (replayId: string) => boolean;
  /** This entry's lane is closed, or its job is held. */
  hold: (entry: Entry) => void;
  /** Something arrived from memory. */
  onArrived: () => void;
  /** What waits in memory was forgotten. */
  onForgotten: () => void;
  /** A load has found what there is room for, of copies too if it was asked for them. */
  onLoaded: (found: { copies: boolean }) => void;
}): Arrivals {
  const { outbox, window, handOff, decisions, room, isOpen, isStopped, hold } = options;
  const { onArrived, onForgotten, onLoaded } = options;
  const gates = createGates();
  let state: State = { is: 'behind', missed: undefined };
  let hasHeld = false; // since the last load, events were handed over that are held: a load finds them
  let horizon = END; // what is in batches from here on was not in memory after the last load
  let loads = 0; // begun
  const search = createSearch({
    outbox,
    window,
    handOff,
    isOpen,
    isStopped,
  });

  function roomLeft(of: 'live' | 'copies'): { limit: number; bytes: number } | undefined {
    const { entries, bytes } = window.size(of);
    const left = { limit: room[of].entries - entries, bytes: room[of].bytes - bytes };
    return left.limit > 0 && left.bytes > 0 ? left : undefined;
  }

  /** For a load of its own, or for one more write: with less, a load would find little, and a write too little. */
  function hasMuchRoom({ but: taken } = { but: 0 }): boolean {
    const left = roomLeft('live');
    if (left === undefined) return false;
    return left.limit - taken >= room.live.entries / 2 && left.bytes >= room.live.bytes / 2;
  }

  /** What waits for a load, and `more`, stays in the outbox until it is loaded (R9). */
  function fallBehind(more: readonly Entry[] = []): void {
    const late = state.is === 'loading' ? state.late.take() : [];
    const missed = [...gates.clear(), ...late.flatMap(({ entries }) => entries), ...more];
    for (const entry of missed) window.drop(entry);
    const before = state.is === 'behind' ? state.missed : undefined;
    state = { is: 'behind', missed: missed.map(({ position }) => position).reduce(lowest, before) };
  }

  function forget(): void {
    fallBehind();
    window.forgetIdle();
    onForgotten();
  }

  /** Its lane is closed if an earlier event of its job failed just now (R32). */
  function admit(entry: Entry): void {
    if (!window.admit(entry)) hold(entry);
  }

  const takes = () => state.is === 'caughtUp' && isOpen() && roomLeft('live') !== undefined;

  function receive(written: Written): void {
    hasHeld ||= written.hasHeld;
    if (takes()) take(written);
    else if (state.is !== 'loading' || !state.late.add(written)) fallBehind(written.entries);
    onArrived();
  }

  function take({ entries, changedJobs }: Written): void {
    for (const key of changedJobs) gates.close(key, loads + 1);
    for (const entry of entries) {
      if (gates.add(entry)) window.keep(entry);
      else admit(entry);
    }
  }

  async function load(wanted: { copies: boolean }): Promise<number> {
    for (;;) {
      const loaded = await loadOnce(wanted);
      if (loaded !== 'again') return loaded;
    }
  }

  async function loadOnce({ copies }: { copies: boolean }): Promise<number | 'again'> {
    if (!isOpen()) {
      forget(); // nothing waits here meanwhile (R27)
      return 0;
    }
    // What waits for a load must not use up the room of all loads.
    if (search.isUnknownNew() || (roomLeft('live') === undefined && !gates.areOpen())) fallBehind();
    const { version, isAsDecided } = await readDecisions();
    const forgettings = window.forgettings();
    const live = roomLeft('live');
    if (live === undefined) {
      if (isAsDecided) onLoaded({ copies });
      return 0;
    }
    if (state.is !== 'caughtUp') await handOff.answered(); // R11
    const begun = begin();
    try {
      const found = await search.find({
        version,
        live,
        copies: copies ? roomLeft('copies') : undefined,
        since: begun.is === 'caughtUp' ? begun.since : undefined,
        horizon,
      });
      if (found === 'later') {
        fallBehind();
        return 0;
      }
      if (found === 'lost') forget(); // what it has told of decisions may be lost, too
      if (found === 'lost' || window.forgettings() !== forgettings) return 'again'; // R23
      if (!found.isAsDecided) fallBehind(); // R24
      const arrived = arrive(found, begun);
      if (found.isAsDecided) onLoaded({ copies });
      return arrived;
    } catch (error) {
      fallBehind();
      throw error;
    }
  }

  /** Lets what waits in memory be forgotten if they are new (R22). `isAsDecided`: what waits there is still the same. */
  async function readDecisions(): Promise<{ version: string; isAsDecided: boolean }> {
    const question = decisions.ask();
    const before = window.forgettings();
    const version = await outbox.version();
    return { version, isAsDecided: decisions.note(version, question) && window.forgettings() === before };
  }

  /** @returns the state that a load begins with. If it is another one at the end, the load does not catch up (R15) */
  function begin(): Loading | CaughtUp {
    const begun =
      state.is === 'caughtUp' ? state : { is: 'loading' as const, late: createLateWrites(room.live) };
    state = begun;
    hasHeld = false;
    loads += 1;
    return begun;
  }

  function arrive({ pending, held, copies }: Found, begun: State): number {
    const bound = lowest(pending.bound, state.is === 'behind' ? state.missed : undefined); // R14
    horizon = bound ?? END;
    const isBound = ({ position }: Entry) => bound !== undefined && !isBefore(position, bound);
    if (state.is === 'loading') takeLate(state.late, isBound);
    const mayGo = (entry: Entry) => {
      const goes = !window.has(entry.position) && !isBound(entry);
      // Of this row, one entry is in memory already or is loaded later.
      if (!goes) entry.batch?.split();
      return goes;
    };
    const fresh = pending.found.filter(({ entry }) => mayGo(entry));
    const toHold = new Set(fresh.flatMap(({ entry, isHeld }) => (isHeld ? entry : []))); // R13
    const live = [...fresh.map(({ entry }) => entry), ...held.filter(mayGo)].toSorted(byPosition);
    const due = copies.filter(mayGo);
    for (const entry of [...live, ...due]) {
      for (const earlier of gates.before(entry)) admit(earlier); // R8
      if (toHold.has(entry)) hold(entry);
      else admit(entry);
    }
    if (bound === undefined && state === begun) catchUp(pending.xid);
    else fallBehind();
    return live.length + due.length;
  }

  function takeLate(late: LateWrites, isBound: (entry: Entry) => boolean): void {
    for (const written of late.take()) {
      take({ ...written, entries: written.entries.filter((entry) => !isBound(entry)) });
      for (const entry of written.entries.filter(isBound)) window.drop(entry);
    }
  }

  function catchUp(since: string): void {
    state = { is: 'caughtUp', since };
    for (const entry of gates.open(loads)) admit(entry);
  }

  handOff.onWritten(receive);
  decisions.onNew(forget);

  return {
    load,
    isDue: () => isOpen() && (!gates.areOpen() || ((state.is === 'behind' || hasHeld) && hasMuchRoom())),
    takes,
    isFull: () => isOpen() && !(state.is === 'caughtUp' && hasMuchRoom({ but: handOff.writing() })),
    reopen: (key) => {
      // What waits at the gate is held before the lane is open (R34).
      for (const entry of gates.take(key)) hold(entry);
      window.reopen(key);
    },
    forget,
  };
}

const byPosition = (a: Entry, b: Entry): number => (isBefore(a.position, b.position) ? -1 : 1);

function lowest(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return isBefore(a, b) ? a : b;
}
