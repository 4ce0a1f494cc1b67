// How entries come into the window: handed over by the intake after their commit, or loaded from the outbox.
//
// - Behind: the outbox may have events that are not in memory. They are loaded, the oldest first, and what is handed over is left
//   to later loads.
// - Caught up: a load has found all that there was. From then on, what this replica writes is handed over and goes at once,
//   and loads find what others write.
//
// The order of a job's events (guarantee 5) depends on these rules:
// - A write without an answer is left out of a load: it is handed over. What a load has found takes its place only when all
//   writes that had no answer then have one, since one of these may come before it.
// - If another writer recorded the job's delivery before, the event waits behind a gate (gates.ts).
// - An event that is to be held closes its lane: nothing of its job takes its place before that is written, and before what
//   writes, gates and loads still had of it then is held, too.
// - Nothing goes that is behind an event which is known not to be in memory: the first of a batch that a load has left, or one that
//   was handed over while there was no room.

import type { Decisions } from './decisions.ts';
import { type Entry, isBefore } from './entry.ts';
import { createGates } from './gates.ts';
import type { HandOff, Written } from './hand-off.ts';
import type { Outbox } from './outbox.ts';
import type { Loaded } from './pending.ts';
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

/** What one load has found. */
type Found = {
  readonly number: number;
  readonly pending: Loaded;
  readonly held: readonly Entry[];
  readonly copies: readonly Entry[];
};

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
  let forgettings = 0; // of entries that a running load leaves out, since they were in memory when it began
  let loads = 0; // begun
  let hasNews = true; // something is known to wait in the outbox
  let buffered = emptyBuffer(); // handed over while a load runs that may catch up
  let isLoading = false;
  let horizon = END; // what is in batches from here on was not in memory after the last load
  let isTorn = false; // since the running load began, something was forgotten that it may not find
  let unknown = handOff.unknown(); // when it was looked at last
  let opened = outbox.opened(); // when the last load had read
  let missed: string | undefined; // the first event that was handed over since a load began, and is not in memory

  function roomLeft(of: 'live' | 'copies'): { limit: number; bytes: number } | undefined {
    const { entries, bytes } = window.size(of);
    const left = { limit: room[of].entries - entries, bytes: room[of].bytes - bytes };
    return left.limit > 0 && left.bytes > 0 ? left : undefined;
  }

  const hasRoom = ({ entries, bytes }: Room) => entries < room.live.entries && bytes < room.live.bytes;

  /** For a load of its own, or for one more write: with less, a load would find little, and a write too little. */
  function hasMuchRoom({ but: taken } = { but: 0 }): boolean {
    const left = roomLeft('live');
    if (left === undefined) return false;
    return left.limit - taken >= room.live.entries / 2 && left.bytes >= room.live.bytes / 2;
  }

  /** They stay in the outbox until they are loaded. */
  function miss(entries: readonly Entry[]): void {
    for (const entry of entries) {
      window.drop(entry);
      if (missed === undefined || isBefore(entry.position, missed)) missed = entry.position;
    }
  }

  function fallBehind(): void {
    isCaughtUp = false;
    isTorn = true;
    since = undefined;
    hasNews = true;
    miss(gates.clear());
    for (const { entries } of buffered.writes) miss(entries);
    buffered = emptyBuffer();
  }

  function forget(): void {
    fallBehind();
    if (window.forgetIdle() > 0) forgettings += 1;
    onForgotten();
  }

  /** Its lane is closed if an earlier event of its job failed just now. */
  function admit(entry: Entry): void {
    if (!window.admit(entry)) hold(entry);
  }

  const takes = () => isCaughtUp && isOpen() && roomLeft('live') !== undefined;

  function receive(written: Written): void {
    hasNews ||= written.hasHeld;
    if (takes()) {
      take(written);
    } else if (!isCaughtUp && isLoading && !isTorn && hasRoom(buffered)) {
      buffered.writes.push(written);
      buffered.entries += written.entries.length;
      for (const { data } of written.entries) buffered.bytes += data.length;
    } else {
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

  async function load({ copies: wantsCopies }: { copies: boolean }): Promise<number> {
    if (!isOpen()) {
      // It may take long until entries may be published, and what is decided until then is not read.
      forget();
      return 0;
    }
    if (isUnknownNew()) fallBehind();
    // What waits for a load must not use up the room of all loads.
    if (roomLeft('live') === undefined && !gates.areOpen()) fallBehind();
    const live = roomLeft('live');
    if (live === undefined) {
      if (await isAsDecided()) onLoaded({ copies: wantsCopies });
      return 0;
    }
    if (!isCaughtUp) await begin();
    const question = decisions.ask();
    const before = forgettings;
    const number = ++loads;
    const next = handOff.next();
    const inFlight = handOff.inFlight();
    hasNews = false;
    missed = undefined;
    isTorn = false;
    isLoading = true;
    try {
      // The batches last: the others are younger than an event of theirs that must come first, and this load finds that.
      const copies = wantsCopies ? await findCopies() : [];
      const held = await outbox.loadHeld({ ...live, except: window.positions() });
      const pending = await outbox.loadPending({ ...live, since, except: window.inBatches(), inFlight });
      const openedBefore = opened;
      opened = outbox.opened();
      if (pending.found.length + held.length + copies.length > 0) await handOff.answered();
      if (isUnknownNew() || !isOpen()) {
        fallBehind();
        return 0;
      }
      const isCurrent = decisions.note(pending.version, question);
      if (!isCurrent || forgettings !== before) return await load({ copies: wantsCopies });
      // Postgres may have lost what it had committed, on rows that a load of what is new does not find. After a failover, numbers
      // of transactions come again. A crash ends all connections, and loses results, whose commits do not wait for the disk.
      if (since !== undefined && (isBefore(pending.xid, since) || opened !== openedBefore)) {
        fallBehind();
        return await load({ copies: wantsCopies });
      }
      const isOthers = ({ mark }: Loaded['found'][number]) =>
        mark?.writer !== next.writer || mark.number < next.number;
      const found = pending.found.filter(isOthers);
      const arrived = arrive({ number, pending: { ...pending, found }, held, copies });
      onLoaded({ copies: wantsCopies });
      return arrived;
    } catch (error) {
      fallBehind();
      throw error;
    } finally {
      isLoading = false;
    }
  }

  /**
   * An event in a write without an answer may belong to a job that is held since then, which the hand-off does not tell. So these
   * events are left to the load, and a decision that comes after this changes the version.
   */
  async function begin(): Promise<void> {
    fallBehind();
    await isAsDecided();
    await handOff.answered();
  }

  /** Reads whether somebody has decided about an event that may wait in memory. If so, all that waits there is loaded again. */
  async function isAsDecided(): Promise<boolean> {
    const question = decisions.ask();
    const before = forgettings;
    return decisions.note(await outbox.version(), question) && forgettings === before;
  }

  /** Whether a write has failed, since this was asked last, that may be committed. It may be older than what loads look for. */
  function isUnknownNew(): boolean {
    const before = unknown;
    unknown = handOff.unknown();
    return unknown !== before;
  }

  async function findCopies(): Promise<Entry[]> {
    const left = roomLeft('copies');
    if (left === undefined) return [];
    const found = await outbox.loadCopies({ ...left, except: window.positions(), horizon });
    return found.filter(({ replay }) => !isStopped(replay?.id ?? ''));
  }

  function arrive({ number, pending, held, copies }: Found): number {
    const bound = lowest(pending.bound, missed);
    horizon = bound ?? END;
    const isBound = ({ position }: Entry) => bound !== undefined && !isBefore(position, bound);
    takeBuffered(isBound);
    const mayGo = (entry: Entry) => {
      const goes = !window.has(entry.position) && !isBound(entry);
      // Of this row, one entry is in memory already or is loaded later.
      if (!goes && entry.batch !== undefined) entry.batch.isWhole = false;
      return goes;
    };
    const fresh = pending.found.filter(({ entry }) => mayGo(entry));
    const toHold = new Set(fresh.flatMap(({ entry, isHeld }) => (isHeld ? entry : [])));
    const live = [...fresh.map(({ entry }) => entry), ...held.filter(mayGo)].toSorted(byPosition);
    const due = copies.filter(mayGo);
    for (const entry of [...live, ...due]) {
      for (const earlier of gates.before(entry)) admit(earlier);
      if (toHold.has(entry)) hold(entry);
      else admit(entry);
    }
    if (bound === undefined && !isTorn) catchUp(number, pending.xid);
    else fallBehind();
    return live.length + due.length;
  }

  /** What was handed over while the load ran. */
  function takeBuffered(isBound: (entry: Entry) => boolean): void {
    const late = buffered.writes;
    buffered = emptyBuffer();
    for (const { entries, changedJobs, hasHeld } of late) {
      take({ entries: entries.filter((entry) => !isBound(entry)), changedJobs, hasHeld });
      miss(entries.filter(isBound));
    }
  }

  function catchUp(number: number, xid: string): void {
    since = xid;
    isCaughtUp = true;
    for (const entry of gates.open(number)) admit(entry);
  }

  handOff.onWritten(receive);
  decisions.onNew(forget);

  return {
    load,
    isDue: () => isOpen() && (!gates.areOpen() || (hasNews && hasMuchRoom())),
    takes,
    isFull: () => isOpen() && !(isCaughtUp && hasMuchRoom({ but: handOff.writing() })),
    reopen: (key) => {
      // They were handed over before the job was held, perhaps, and would go now before what is held.
      for (const entry of gates.take(key)) hold(entry);
      window.reopen(key);
    },
    forget,
  };
}

const emptyBuffer = () => ({ writes: [] as Written[], entries: 0, bytes: 0 });

const byPosition = (a: Entry, b: Entry): number => (isBefore(a.position, b.position) ? -1 : 1);

function lowest(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return isBefore(a, b) ? a : b;
}
