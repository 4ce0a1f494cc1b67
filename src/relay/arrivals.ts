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
// - If another writer recorded the job's delivery before, the event waits for a load that begins after its commit: it finds
//   what the other one wrote.
// - While some batches are not loaded, nothing behind the first of these is published.

import { jobKey } from '../ledger/index.ts';
import { type Entry, isBefore } from './entry.ts';
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
  /** Whether all that is in the outbox is in memory, but for what others wrote since the last poll. */
  readonly isCaughtUp: () => boolean;
  /** All that waits in memory leaves it: this replica does not lead, or an operator has decided about some of it. */
  readonly forget: () => void;
};

/** Behind all sequences. */
const END = String(2n ** 63n - 1n);

/** An event of another writer may come before these. */
type Gate = {
  /** The number of the first load that finds it. */
  readonly load: number;
  readonly entries: Entry[];
};

export function createArrivals(options: {
  outbox: Pick<Outbox, 'loadPending' | 'loadHeld' | 'loadCopies'>;
  window: Window;
  handOff: Omit<HandOff, 'write'>;
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
}): Arrivals {
  const { outbox, window, handOff, room, isOpen, isStopped, hold, onArrived, onForgotten } = options;
  const gates = new Map<string, Gate>();
  let isCaughtUp = false;
  let since: string | undefined; // what ended before is in memory or published
  let version: string | undefined;
  let loads = 0; // begun
  let hasNews = true; // something is known to wait in the outbox
  let buffered: Written[] | undefined; // while a load runs that may catch up
  let waiting = 0; // entries behind gates and in `buffered`

  /** Its lane is closed if an earlier event of its job failed just now. */
  function admit(entry: Entry): void {
    if (!window.admit(entry)) hold(entry);
  }

  function roomLeft(of: 'live' | 'copies'): { limit: number; bytes: number } | undefined {
    const { entries, bytes } = window.size(of);
    const left = { limit: room[of].entries - entries, bytes: room[of].bytes - bytes };
    return left.limit > 0 && left.bytes > 0 ? left : undefined;
  }

  /** For a load of its own: with less room, each would find little. */
  const hasMuchRoom = () => (roomLeft('live')?.limit ?? 0) >= room.live.entries / 2;

  /** What is handed over from now on stays in the outbox until it is loaded. */
  function fallBehind(): void {
    for (const { entries } of gates.values()) {
      for (const { batch } of entries) if (batch !== undefined) batch.isWhole = false;
    }
    gates.clear();
    isCaughtUp = false;
    since = undefined;
    buffered = undefined;
    waiting = 0;
    hasNews = true;
  }

  function forget(): void {
    fallBehind();
    window.forgetIdle();
    onForgotten();
  }

  function receive(written: Written): void {
    hasNews ||= written.hasHeld;
    if (!isOpen() || roomLeft('live') === undefined || waiting > room.live.entries) fallBehind();
    else if (isCaughtUp) take(written);
    else if (buffered !== undefined) {
      buffered.push(written);
      waiting += written.entries.length;
    }
    onArrived();
  }

  function take({ entries, changedJobs }: Written): void {
    for (const key of changedJobs)
      gates.set(key, { load: loads + 1, entries: gates.get(key)?.entries ?? [] });
    for (const entry of entries) {
      const gate = gates.size === 0 ? undefined : gates.get(jobKey(entry.source, entry.jobId));
      if (gate === undefined) {
        admit(entry);
      } else {
        gate.entries.push(entry);
        waiting += 1;
      }
    }
  }

  /** Load number `loaded` has found all that it could. */
  function openGates(loaded: number): void {
    for (const [key, gate] of gates) {
      if (gate.load > loaded) continue;
      gates.delete(key);
      waiting -= gate.entries.length;
      for (const entry of gate.entries) admit(entry);
    }
  }

  async function load({ copies: wantsCopies }: { copies: boolean }): Promise<number> {
    const live = roomLeft('live');
    if (!isOpen() || live === undefined) return 0;
    const number = ++loads;
    const unknown = handOff.unknown();
    const next = handOff.next();
    const inFlight = handOff.inFlight();
    hasNews = false;
    if (!isCaughtUp) {
      buffered = [];
      waiting = 0;
    }
    try {
      // The batches last: the others are younger than an event of theirs that must come first, and this load finds that.
      const copies = wantsCopies ? await findCopies() : [];
      const held = await outbox.loadHeld({ ...live, except: window.positions() });
      const pending = await outbox.loadPending({ ...live, since, except: window.wholeBatches(), inFlight });
      if (pending.found.length + held.length + copies.length > 0) await handOff.answered();
      if (handOff.unknown() !== unknown || !isOpen()) {
        fallBehind();
        return 0;
      }
      if (isDecidedAnew(pending)) return 1;
      const found = pending.found.filter(
        ({ mark }) => mark?.writer !== next.writer || mark.number < next.number,
      );
      return arrive(number, { ...pending, found }, held, copies);
    } catch (error) {
      fallBehind();
      throw error;
    }
  }

  async function findCopies(): Promise<Entry[]> {
    const left = roomLeft('copies');
    if (left === undefined) return [];
    const found = await outbox.loadCopies({ ...left, except: window.positions(), horizon: END });
    return found.filter(({ replay }) => !isStopped(replay?.id ?? ''));
  }

  /** An operator has taken an event out of a batch. It may wait in memory, so all that waits there is loaded again. */
  function isDecidedAnew(pending: Loaded): boolean {
    const isAnew = version !== undefined && version !== pending.version;
    ({ version } = pending);
    if (isAnew) forget();
    return isAnew;
  }

  function arrive(number: number, pending: Loaded, held: readonly Entry[], copies: readonly Entry[]): number {
    const { nextFirst } = pending;
    const isInOrder = ({ position }: Entry) => nextFirst === undefined || isBefore(position, nextFirst);
    const mayGo = (entry: Entry) => {
      const goes = !window.has(entry.position) && isInOrder(entry);
      // Of this row, one entry is in memory already or is loaded later.
      if (!goes && entry.batch !== undefined) entry.batch.isWhole = false;
      return goes;
    };
    const fresh = pending.found.filter(({ entry }) => mayGo(entry));
    const isHeld = new Set(fresh.flatMap(({ entry, isHeld: held }) => (held ? entry : [])));
    const live = [...fresh.map(({ entry }) => entry), ...held.filter(mayGo)];
    for (const entry of live.toSorted((a, b) => (isBefore(a.position, b.position) ? -1 : 1))) {
      if (isHeld.has(entry)) hold(entry);
      else admit(entry);
    }
    const due = copies.filter(mayGo);
    for (const entry of due) admit(entry);
    catchUp(number, nextFirst === undefined ? pending.xid : undefined);
    return live.length + due.length;
  }

  /** @param xid undefined if something is left in the outbox */
  function catchUp(number: number, xid: string | undefined): void {
    const late = buffered;
    if (xid === undefined || (!isCaughtUp && late === undefined)) {
      fallBehind();
      return;
    }
    since = xid;
    buffered = undefined;
    waiting -= late?.reduce((sum, { entries }) => sum + entries.length, 0) ?? 0;
    isCaughtUp = true;
    openGates(number);
    for (const written of late ?? []) receive(written);
  }

  handOff.onWritten(receive);

  return {
    load,
    isDue: () => isOpen() && (gates.size > 0 || (hasNews && hasMuchRoom())),
    isCaughtUp: () => isCaughtUp,
    forget,
  };
}
