// What the operator parks is not published from a second later on, until it is to be published again; and what is discarded never.

import type { Message, Parked, Recorded } from '../recorded.ts';
import { freshCopies, groupBy } from './bus.ts';
import { type Violation, violation } from './violation.ts';
import { AFTERMATH_MS, injectionsDuring } from './windows.ts';

/** As docs/operators.md promises. */
const EFFECT_MS = 1_000;
/** From the broker to the subscriber's record, on a busy machine. */
const ARRIVAL_MS = 500;

/** While these last, the leader may not be able to read what was decided. */
const BLINDS = /^(replica-|rolling-|hand-off-|takeover-|loop-stall|postgres-|disk-full)/;
/** And while these last, a message that is in flight stays on its way. */
const DELAYS = /^(rabbitmq-|memory-alarm)/;

type Arrivals = ReadonlyMap<string, readonly Message[]>;

export function parks(recorded: Recorded): Violation[] {
  const received = groupBy(freshCopies(recorded.messages), ({ id }) => id);
  const effective = effectOf(recorded, received);
  return recorded.parked.flatMap((park) => {
    const { eventId, isDiscarded } = park;
    const fromMs = effective(park);
    const untilMs = park.settledMs ?? Number.POSITIVE_INFINITY;
    const late = received.get(eventId)?.find(({ atMs }) => atMs > fromMs && atMs < untilMs);
    if (late === undefined) return [];
    const after = Math.round(late.atMs - park.parkedMs);
    const what = `came ${after} ms after it was parked${isDiscarded ? ', and was discarded' : ''}`;
    return [violation('revived', `${eventId} ${what}`)];
  });
}

/** How many parks the check could have found broken: they lasted longer than what is allowed. */
export function effectiveParks(recorded: Recorded): number {
  const received = groupBy(freshCopies(recorded.messages), ({ id }) => id);
  const effective = effectOf(recorded, received);
  return recorded.parked.filter((park) => (park.settledMs ?? Number.POSITIVE_INFINITY) > effective(park))
    .length;
}

/**
 * From when on a parked event must not come. What was in flight may still arrive, once the faults of that time are over. But an
 * event was not in flight if the one before it of its job came later.
 */
function effectOf(recorded: Recorded, received: Arrivals): (park: Parked) => number {
  const before = eventsBefore(recorded);
  return ({ eventId, parkedMs }) => {
    const [first] = received.get(before.get(eventId) ?? '') ?? [];
    const isBehind = first !== undefined && first.atMs > parkedMs + EFFECT_MS + ARRIVAL_MS;
    const delays = injectionsDuring(recorded, { fromMs: parkedMs, toMs: parkedMs + EFFECT_MS })
      .filter(({ fault }) => BLINDS.test(fault) || (!isBehind && DELAYS.test(fault)))
      .map(
        ({ episode }) => recorded.episodes.find(({ number }) => number === episode)?.recoveredMs ?? Infinity,
      );
    return Math.max(parkedMs, ...delays.map((ms) => ms + AFTERMATH_MS)) + EFFECT_MS + ARRIVAL_MS;
  };
}

/** For each event the one before it of its job. */
function eventsBefore({ attempts, ledger }: Recorded): ReadonlyMap<string, string> {
  const jobs = new Map(attempts.map(({ notice }) => [notice.eventId, `${notice.source} ${notice.jobId}`]));
  const last = new Map<string | undefined, string>();
  const before = new Map<string, string>();
  for (const { id } of ledger.events) {
    const job = jobs.get(id);
    const previous = last.get(job);
    if (previous !== undefined) before.set(id, previous);
    last.set(job, id);
  }
  return before;
}
