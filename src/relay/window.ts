// The part of the outbox that is in the relay's memory, one lane a job. The first entry of a lane may be in
// flight; the next goes when that one is through. Promises that no live entry of a lane passes a live one before it,
// and no copy of a replay anything: live entries go before the copies that are not on their way, and on past one that
// failed. Knows nothing of the broker or the database.

import { jobKey } from '../ledger/index.ts';
import type { Entry } from './outbox.ts';

/**
 * A lane is in `ready`, or its first entry is in flight or waits for its failure to be written, or it has no
 * entries but held ones.
 */
export type Lane = {
  readonly key: string;
  readonly entries: Entry[];
  /** Copies that failed, and those behind them of the same replay, until the database knows of the failure. */
  readonly held: Entry[];
};

export type Window = {
  readonly admit: (entry: Entry) => void;
  /** Every entry in memory, also those whose result is not written yet. */
  readonly positions: () => string[];
  readonly size: (of: 'live' | 'copies') => { entries: number; bytes: number };
  /** Takes the next lane to publish from; `isMeant` takes it out of turn. */
  readonly take: (isMeant?: (first: Entry) => boolean) => Lane | undefined;
  /** It goes again, before all others. */
  readonly putBack: (lane: Lane) => void;
  /** Its first entry is through: the next may go. */
  readonly advance: (lane: Lane) => void;
  /** Its first entry is a copy that failed. What is not of that replay goes on. */
  readonly hold: (lane: Lane) => void;
  /** The result of this entry is written. */
  readonly forget: (entry: Entry) => void;
  /** The failure of this entry is written: it and all that have to wait for it are the database's to tell. */
  readonly forgetFailed: (entry: Entry) => void;
  /** All of a replay's copies that are not on their way. */
  readonly forgetReplay: (replayId: string) => void;
  /** All that is not on its way and whose result is not awaited. */
  readonly forgetIdle: () => void;
};

const isCopyOf = (replayId: string | undefined) => (entry: Entry) =>
  replayId !== undefined && entry.replay?.id === replayId;

export function createWindow(): Window {
  const known = new Map<string, Entry>();
  const lanes = new Map<string, Lane>();
  const ready = new Set<Lane>(); // in the order of their turns
  const sizes = { live: { entries: 0, bytes: 0 }, copies: { entries: 0, bytes: 0 } };

  function count(entry: Entry, by: 1 | -1): void {
    const size = sizes[entry.replay === undefined ? 'live' : 'copies'];
    size.entries += by;
    size.bytes += by * entry.data.length;
  }

  function forget(entry: Entry): void {
    if (known.delete(entry.position)) count(entry, -1);
  }

  function tidy(lane: Lane): void {
    if (lane.entries.length > 0) return;
    ready.delete(lane);
    if (lane.held.length === 0) lanes.delete(lane.key);
  }

  function goOn(lane: Lane): void {
    if (lane.entries.length > 0) ready.add(lane);
    else tidy(lane);
  }

  /** What happens now does not wait for what happened before: only for a copy that is on its way. */
  function placeIn(lane: Lane, entry: Entry): number {
    const { entries } = lane;
    if (entry.replay !== undefined) return entries.length;
    const firstIdle = ready.has(lane) ? 0 : 1;
    const copy = entries.findIndex((each, index) => index >= firstIdle && each.replay !== undefined);
    return copy === -1 ? entries.length : copy;
  }

  return {
    positions: () => [...known.keys()],
    size: (of) => sizes[of],

    admit: (entry) => {
      known.set(entry.position, entry);
      count(entry, 1);
      const key = jobKey(entry.source, entry.jobId);
      const lane = lanes.get(key) ?? { key, entries: [], held: [] };
      lanes.set(key, lane);
      if (lane.held.some(isCopyOf(entry.replay?.id))) {
        lane.held.push(entry);
        return;
      }
      lane.entries.splice(placeIn(lane, entry), 0, entry);
      if (lane.entries.length === 1) ready.add(lane);
    },

    take: (isMeant = () => true) => {
      for (const lane of ready) {
        if (!isMeant(lane.entries[0] as Entry)) continue;
        ready.delete(lane);
        return lane;
      }
      return undefined;
    },

    putBack: (lane) => {
      const others = [...ready];
      ready.clear();
      for (const each of [lane, ...others]) ready.add(each);
    },

    advance: (lane) => {
      lane.entries.shift();
      goOn(lane);
    },

    hold: (lane) => {
      const failed = lane.entries[0];
      lane.held.push(...extract(lane.entries, isCopyOf(failed?.replay?.id)));
      goOn(lane);
    },

    forget,

    forgetFailed: (entry) => {
      const lane = lanes.get(jobKey(entry.source, entry.jobId));
      if (lane === undefined) return forget(entry);
      const gone =
        entry.replay === undefined ? lane.entries.splice(0) : extract(lane.held, isCopyOf(entry.replay.id));
      for (const each of gone) forget(each);
      forget(entry);
      tidy(lane);
    },

    forgetReplay: (replayId) => {
      for (const lane of lanes.values()) {
        const onItsWay = ready.has(lane) ? 0 : 1;
        for (const entry of extract(lane.entries, isCopyOf(replayId), onItsWay)) forget(entry);
        tidy(lane);
      }
    },

    forgetIdle: () => {
      for (const lane of lanes.values()) {
        for (const entry of lane.entries.splice(ready.has(lane) ? 0 : 1)) forget(entry);
        tidy(lane);
      }
    },
  };
}

/** Takes out of the list, and returns, those that are meant. */
function extract(list: Entry[], isMeant: (entry: Entry) => boolean, from = 0): Entry[] {
  const taken = list.slice(from).filter(isMeant);
  const left = list.filter((entry, index) => index < from || !isMeant(entry));
  list.splice(0, list.length, ...left);
  return taken;
}
