// The part of the outbox that is in the relay's memory, with a lane for each job. A lane's first entry may be in flight; the next
// one goes when that one is settled (R28). Guarantees: within a job, no live entry passes an earlier live one, and no copy passes a
// live entry or an earlier copy of its replay. Live entries go before all copies of their job that are not in flight, and do not
// wait for a copy that failed. Does not know the broker or the database.

import { jobKey } from '../ledger/index.ts';
import { createLinkedList, type Linked } from '../base/collections/linked-list.ts';
import { createPassingMap } from '../base/collections/passing-map.ts';
import { type Entry, isBefore } from './entry.ts';

/**
 * - `empty`: no entries, but for those that are deferred. It is there only for these, or while it is closed.
 * - `ready`: its first entry may go.
 * - `inFlight`: its first entry has been taken, and is not settled. Nothing else of it may go (R28).
 */
export type LaneState = 'empty' | 'ready' | 'inFlight';

/** One job's entries. */
export interface Lane extends Linked<Lane> {
  readonly key: string;
  state: LaneState;
  readonly entries: Entry[];
  /** Copies that failed, and those behind them of the same replay, until the failure is written. */
  readonly deferred: Entry[];
  /** How many of the job's live entries failed or are to be held, until that is written: nothing takes its place here. */
  closed: number;
}

export type Window = {
  /** An entry takes its place. @returns false if its lane is closed */
  readonly admit: (entry: Entry) => boolean;
  /** It counts as in memory, and is not published until it is admitted. */
  readonly keep: (entry: Entry) => void;
  /** Of all entries in memory, also those whose result is not written yet. */
  readonly has: (position: string) => boolean;
  /** Of the entries in memory that have a row of their own. */
  readonly positions: () => string[];
  /** The others: the keys of the batches that are in memory whole, and the positions of entries of the rest. */
  readonly inBatches: () => { batches: string[]; events: string[] };
  readonly size: (of: 'live' | 'copies') => { entries: number; bytes: number };
  /** Takes the next lane to publish from, or out of turn the first one whose first entry `matches`. */
  readonly take: (matches?: (first: Entry) => boolean) => Lane | undefined;
  /** Its turn is next, before all others. */
  readonly putBack: (lane: Lane) => void;
  /** Its first entry is settled: the next one may go. */
  readonly advance: (lane: Lane) => void;
  /** Its first entry is a copy that failed: defers that replay's copies, and the others continue. */
  readonly deferReplay: (lane: Lane) => void;
  /**
   * A live entry of this job failed or is to be held: the lane is closed, until it was reopened as often.
   * @returns what has waited there and is to be held, too
   */
  readonly close: (key: string) => Entry[];
  readonly reopen: (key: string) => void;
  /** It leaves memory without a result, and is loaded again. */
  readonly drop: (entry: Entry) => void;
  /** The result of this entry is written: it leaves memory. */
  readonly forget: (entry: Entry) => void;
  /** The failure of this copy is written: it leaves memory, with all that have to wait for it. A load finds them when due. */
  readonly forgetFailedCopy: (entry: Entry) => void;
  /** All of a replay's copies that are not in flight leave memory. */
  readonly forgetReplay: (replayId: string) => void;
  /** All entries leave memory that are neither in flight nor wait for their result to be written. */
  readonly forgetIdle: () => void;
  /** How often they have. */
  readonly forgettings: () => number;
};

const isCopyOf = (replayId: string | undefined) => (entry: Entry) =>
  replayId !== undefined && entry.replay?.id === replayId;

export function createWindow(): Window {
  const known = createPassingMap<string, Entry>();
  const lanes = createPassingMap<string, Lane>();
  const ready = createLinkedList<Lane>(); // in the order of their turns
  let forgettings = 0;
  const sizes = { live: { entries: 0, bytes: 0 }, copies: { entries: 0, bytes: 0 } };

  function count(entry: Entry, by: 1 | -1): void {
    const size = sizes[entry.replay === undefined ? 'live' : 'copies'];
    size.entries += by;
    size.bytes += by * entry.data.length;
  }

  function remember(entry: Entry): void {
    if (known.has(entry.position)) return;
    known.set(entry.position, entry);
    count(entry, 1);
  }

  function forget(entry: Entry): void {
    if (known.delete(entry.position)) count(entry, -1);
  }

  /** Its batch is not in memory whole any more. */
  function drop(entry: Entry): void {
    entry.batch?.split();
    forget(entry);
  }

  function laneOf(key: string): Lane {
    const present = lanes.get(key);
    if (present !== undefined) return present;
    const lane: Lane = {
      key,
      state: 'empty',
      entries: [],
      deferred: [],
      closed: 0,
      previous: undefined,
      next: undefined,
    };
    lanes.set(key, lane);
    return lane;
  }

  function become(lane: Lane, state: LaneState): void {
    lane.state = state;
    if (state === 'ready') ready.add(lane);
    else ready.delete(lane);
    if (state === 'empty' && lane.deferred.length === 0 && lane.closed === 0) lanes.delete(lane.key);
  }

  /** None of its entries is in flight. */
  function rest(lane: Lane): void {
    become(lane, lane.entries.length > 0 ? 'ready' : 'empty');
  }

  /** Entries have come, or have left it. */
  function refresh(lane: Lane): void {
    if (lane.state !== 'inFlight') rest(lane);
  }

  /** Index of the first entry that is not in flight. */
  const firstIdle = ({ state }: Lane): number => (state === 'inFlight' ? 1 : 0);

  /** A live entry's place is before later ones and all copies, but behind a first entry that is in flight. */
  function placeIn(lane: Lane, entry: Entry): number {
    const { entries } = lane;
    if (entry.replay !== undefined) return entries.length;
    const start = firstIdle(lane);
    const next = entries.findIndex(
      (each, index) =>
        index >= start && (each.replay !== undefined || isBefore(entry.position, each.position)),
    );
    return next === -1 ? entries.length : next;
  }

  return {
    keep: remember,
    has: (position) => known.has(position),
    positions: () => known.values().flatMap(({ batch, position }) => (batch === undefined ? position : [])),
    inBatches: () => {
      const inSome = known
        .values()
        .flatMap(({ batch, position }) => (batch === undefined ? [] : { batch, position }));
      return {
        batches: [...new Set(inSome.flatMap(({ batch }) => (batch.isWhole() ? batch.first : [])))],
        events: inSome.flatMap(({ batch, position }) => (batch.isWhole() ? [] : position)),
      };
    },
    size: (of) => sizes[of],

    admit: (entry) => {
      const lane = laneOf(jobKey(entry.source, entry.jobId));
      if (lane.closed > 0) return false;
      remember(entry);
      if (lane.deferred.some(isCopyOf(entry.replay?.id))) {
        lane.deferred.push(entry);
        return true;
      }
      lane.entries.splice(placeIn(lane, entry), 0, entry);
      refresh(lane);
      return true;
    },

    take: (matches = () => true) => {
      for (const lane of ready) {
        if (!matches(lane.entries[0] as Entry)) continue;
        become(lane, 'inFlight');
        return lane;
      }
      return undefined;
    },

    putBack: (lane) => {
      const others = [...ready];
      for (const each of others) ready.delete(each);
      rest(lane);
      for (const each of others) ready.add(each);
    },

    advance: (lane) => {
      lane.entries.shift();
      rest(lane);
    },

    deferReplay: (lane) => {
      const failed = lane.entries[0];
      lane.deferred.push(...extract(lane.entries, isCopyOf(failed?.replay?.id)));
      rest(lane);
    },

    close: (key) => {
      const lane = laneOf(key);
      lane.closed += 1;
      const waited = lane.entries.splice(firstIdle(lane));
      refresh(lane);
      // The others have rows of their own, and are loaded again.
      for (const each of waited) if (each.batch === undefined) forget(each);
      return waited.filter(({ batch }) => batch !== undefined);
    },

    reopen: (key) => {
      const lane = laneOf(key);
      lane.closed -= 1;
      refresh(lane);
    },

    drop,
    forget,

    forgetFailedCopy: (entry) => {
      const lane = lanes.get(jobKey(entry.source, entry.jobId));
      const gone = lane === undefined ? [] : extract(lane.deferred, isCopyOf(entry.replay?.id));
      for (const each of gone) forget(each);
      forget(entry);
      if (lane !== undefined) refresh(lane);
    },

    forgetReplay: (replayId) => {
      for (const lane of lanes.values()) {
        for (const entry of extract(lane.entries, isCopyOf(replayId), firstIdle(lane))) forget(entry);
        refresh(lane);
      }
    },

    forgetIdle: () => {
      forgettings += 1;
      for (const lane of lanes.values()) {
        for (const entry of lane.entries.splice(firstIdle(lane))) drop(entry);
        refresh(lane);
      }
    },

    forgettings: () => forgettings,
  };
}

/** Removes those that match from the list, and returns them. */
function extract(list: Entry[], matches: (entry: Entry) => boolean, from = 0): Entry[] {
  const taken = list.slice(from).filter(matches);
  const left = list.filter((entry, index) => index < from || !matches(entry));
  list.splice(0, list.length, ...left);
  return taken;
}
