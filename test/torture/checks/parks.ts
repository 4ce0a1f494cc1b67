// What the operator parks is not published from a second later on, until it is to be published again; and what is discarded never.

import type { Message, Parked, Recorded } from '../recorded.ts';
import { freshCopies, groupBy } from './bus.ts';
import { type Violation, violation } from './violation.ts';
import { AFTERMATH_MS, injectionsDuring } from './windows.ts';

/** As docs/operators.md promises. */
const EFFECT_MS = 1_000;
/** From the broker to the subscriber's record, on a busy machine. */
const ARRIVAL_MS = 500;

/** While these last, a message that is in flight stays on its way, or the leader cannot read what was decided. */
const DELAYS =
  /^(replica-|rolling-|hand-off-|takeover-|loop-stall|postgres-|disk-full|rabbitmq-|memory-alarm)/;

export function parks(recorded: Recorded): Violation[] {
  const received = groupBy(freshCopies(recorded.messages), ({ id }) => id);
  return recorded.parked.flatMap((park) => {
    const { eventId, isDiscarded } = park;
    const fromMs = effectiveMs(recorded, park);
    const untilMs = park.settledMs ?? Number.POSITIVE_INFINITY;
    const late = received.get(eventId)?.find(({ atMs }: Message) => atMs > fromMs && atMs < untilMs);
    if (late === undefined) return [];
    const after = Math.round(late.atMs - park.parkedMs);
    const what = `came ${after} ms after it was parked${isDiscarded ? ', and was discarded' : ''}`;
    return [violation('revived', `${eventId} ${what}`)];
  });
}

/** How many parks the check could have found broken: they lasted longer than what is allowed. */
export function effectiveParks(recorded: Recorded): number {
  return recorded.parked.filter(
    (park) => (park.settledMs ?? Number.POSITIVE_INFINITY) > effectiveMs(recorded, park),
  ).length;
}

/** From here on it must not come. What was in flight may still arrive, once the faults of that time are over. */
function effectiveMs(recorded: Recorded, { parkedMs }: Parked): number {
  const span = { fromMs: parkedMs, toMs: parkedMs + EFFECT_MS };
  const delays = injectionsDuring(recorded, span)
    .filter(({ fault }) => DELAYS.test(fault))
    .map(
      ({ episode }) => recorded.episodes.find(({ number }) => number === episode)?.recoveredMs ?? Infinity,
    );
  return Math.max(parkedMs, ...delays.map((ms) => ms + AFTERMATH_MS)) + EFFECT_MS + ARRIVAL_MS;
}
