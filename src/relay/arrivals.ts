// How entries come into the window: handed over by the intake after their commit (late-writes.ts, gates.ts), or loaded from the
// outbox (search.ts).
//
// - Behind: the outbox may have events that are not in memory. They are loaded, the oldest first, and what is handed over is left
//   to later loads.
// - Caught up: a load has found all that there was. From then on, what this replica writes is handed over and goes at once (R6),
//   and loads find what others write.
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
  let isCaughtUp = false;
  let since: string | undefined; // what ended before is in memory or published
  let hasNews = true; // something is known to wait in the outbox
  let horizon = END; // what is in batches from here on was not in memory after the last load
  let loads = 0; // begun
  let late: LateWrites | undefined; // while a load runs
  let forgettings = 0;
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

  /** They stay in the outbox until they are loaded (R9). */
  function miss(entries: readonly Entry[]): void {
    for (const entry of entries) {
      window.drop(entry);
      late?.miss(entry);
    }
  }

  function fallBehind(): void {
    isCaughtUp = false;
    since = undefined;
    hasNews = true;
    miss([...gates.clear(), ...(late?.tear() ?? [])]);
  }

  function forget(): void {
    fallBehind();
    window.forgetIdle();
    forgettings += 1;
    onForgotten();
  }

  /** Its lane is closed if an earlier event of its job failed just now (R32). */
  function admit(entry: Entry): void {
    if (!window.admit(entry)) hold(entry);
  }

  const takes = () => isCaughtUp && isOpen() && roomLeft('live') !== undefined;

  function receive(written: Written): void {
    hasNews ||= written.hasHeld;
    if (takes()) {
      take(written);
    } else if (isCaughtUp || !late?.add(written)) {
      fallBehind();
      miss(written.entries);
    }
    onArrived();
  }

  function take({ entries, changedJobs }: Written): void {
    for (const key of changedJobs) gates.close(key, loads + 1);
    for (const entry of entries) {
      if (gates.add(entry)) window.keep(entry);
      else admit(entry);
    }
  }

  async function load({ copies }: { copies: boolean }): Promise<number> {
    if (!isOpen()) {
      forget(); // nothing waits here meanwhile (R27)
      return 0;
    }
    // What waits for a load must not use up the room of all loads.
    if (search.isUnknownNew() || (roomLeft('live') === undefined && !gates.areOpen())) fallBehind();
    const { version, isAsDecided } = await readDecisions();
    const before = forgettings;
    const live = roomLeft('live');
    if (live === undefined) {
      if (isAsDecided) onLoaded({ copies });
      return 0;
    }
    if (!isCaughtUp) await begin();
    hasNews = false;
    loads += 1;
    late = createLateWrites(room.live);
    try {
      const found = await search.find({
        live,
        copies: copies ? roomLeft('copies') : undefined,
        since,
        horizon,
      });
      if (found === 'later') {
        fallBehind();
        return 0;
      }
      if (found === 'lost') forget(); // what it has told of decisions may be lost, too
      if (found === 'lost' || forgettings !== before) return await load({ copies }); // R23
      if (found.pending.version !== version) {
        fallBehind(); // R24
        return arrive({ ...found, held: [], copies: [] }, late);
      }
      const arrived = arrive(found, late);
      onLoaded({ copies });
      return arrived;
    } catch (error) {
      fallBehind();
      throw error;
    } finally {
      late = undefined;
    }
  }

  /** Lets what waits in memory be forgotten if they are new (R22). `isAsDecided`: what waits there is still the same. */
  async function readDecisions(): Promise<{ version: string; isAsDecided: boolean }> {
    const question = decisions.ask();
    const before = forgettings;
    const version = await outbox.version();
    return { version, isAsDecided: decisions.note(version, question) && forgettings === before };
  }

  /** The events of writes without an answer are left to the load (R11). */
  async function begin(): Promise<void> {
    fallBehind();
    await handOff.answered();
  }

  function arrive({ pending, held, copies }: Found, meanwhile: LateWrites): number {
    const bound = lowest(pending.bound, meanwhile.missed()); // R14
    horizon = bound ?? END;
    const isBound = ({ position }: Entry) => bound !== undefined && !isBefore(position, bound);
    takeLate(meanwhile, isBound);
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
    if (bound === undefined && !meanwhile.isTorn()) catchUp(pending.xid);
    else fallBehind();
    return live.length + due.length;
  }

  function takeLate(meanwhile: LateWrites, isBound: (entry: Entry) => boolean): void {
    for (const { entries, changedJobs, hasHeld } of meanwhile.take()) {
      take({ entries: entries.filter((entry) => !isBound(entry)), changedJobs, hasHeld });
      miss(entries.filter(isBound));
    }
  }

  function catchUp(xid: string): void {
    since = xid;
    isCaughtUp = true;
    for (const entry of gates.open(loads)) admit(entry);
  }

  handOff.onWritten(receive);
  decisions.onNew(forget);

  return {
    load,
    isDue: () => isOpen() && (!gates.areOpen() || (hasNews && hasMuchRoom())),
    takes,
    isFull: () => isOpen() && !(isCaughtUp && hasMuchRoom({ but: handOff.writing() })),
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
