// When a condition becomes an incident, and when that ends: from what was seen before and what is seen now. Pure. Both take a while, so
// that a moment is none, and what comes and goes is one. What is remembered goes with the lease from one replica to the next.

import { z } from 'zod';
import { CONDITIONS, type Condition, END_HOLD_S } from '../base/conditions.ts';
import type { ConditionNow } from './conditions-now.ts';

const Sighting = z.object({
  /** Any text: another version may have written it. */
  name: z.string(),
  subject: z.string(),
  /** By the database's clock, in milliseconds since 1970. */
  firstMs: z.number(),
  lastMs: z.number(),
  /** The most events that waited. */
  waited: z.number(),
  /** The id of its incident, once it is one. */
  incident: z.string().nullable(),
});

export const Memory = z.object({ seen: z.array(Sighting) });

export type Sighting = Readonly<z.infer<typeof Sighting>>;
export type Memory = { readonly seen: readonly Sighting[] };

export type Begun = {
  readonly id: string;
  readonly now: ConditionNow;
  readonly beganMs: number;
  readonly waited: number;
};

export type Judged = {
  readonly memory: Memory;
  readonly begun: readonly Begun[];
  /** All that were incidents before. `endedMs`: null while it goes on. */
  readonly known: readonly (Sighting & {
    readonly incident: string;
    readonly endedMs: number | null;
    /** What is so now. Null: it is not so, and what was said last stands. */
    readonly summary: string | null;
  })[];
};

export function judge(options: {
  readonly memory: Memory;
  readonly conditions: readonly ConditionNow[];
  /** By the database's clock. */
  readonly nowMs: number;
  readonly waiting: number;
  readonly newId: () => string;
  /** Of all times, for tests. */
  readonly scale?: number;
}): Judged {
  const { memory, conditions, nowMs, waiting, newId, scale = 1 } = options;
  const endHoldMs = END_HOLD_S * 1_000 * scale;
  const isOver = ({ lastMs }: { lastMs: number }) => nowMs - lastMs >= endHoldMs;
  const before = new Map(memory.seen.map((sighting) => [keyOf(sighting), sighting]));

  const seenNow = conditions.flatMap((now) => {
    const found = seeAgain(before.get(keyOf(now)), now, { nowMs, waiting, isOver });
    return found === undefined ? [] : [{ now, sighting: found }];
  });
  const begun = seenNow.flatMap(({ now, sighting }): Begun[] => {
    const { holdS }: Condition = CONDITIONS[now.name];
    const hasLasted = sighting.lastMs - sighting.firstMs >= holdS * 1_000 * scale;
    if (sighting.incident !== null || !hasLasted) return [];
    return [{ id: newId(), now, beganMs: sighting.firstMs, waited: sighting.waited }];
  });
  const ids = new Map(begun.map(({ id, now }) => [keyOf(now), id]));
  const present = seenNow.map(({ sighting }) => ({
    ...sighting,
    incident: sighting.incident ?? ids.get(keyOf(sighting)) ?? null,
  }));

  const summaries = new Map(
    seenNow.flatMap(({ now }) => (now.isSo === true ? [[keyOf(now), now.summary] as const] : [])),
  );
  const isPresent = new Set(present.map(keyOf));
  const absent = memory.seen.filter((sighting) => !isPresent.has(keyOf(sighting)));
  const goingOn = absent.filter((sighting) => sighting.incident !== null && !isOver(sighting));
  const known = [...present, ...absent].flatMap((sighting) => {
    const { incident } = sighting;
    if (incident === null || begun.some(({ id }) => id === incident)) return [];
    const hasEnded = !isPresent.has(keyOf(sighting)) && isOver(sighting);
    const summary = summaries.get(keyOf(sighting)) ?? null;
    return [{ ...sighting, incident, endedMs: hasEnded ? sighting.lastMs : null, summary }];
  });
  return { memory: { seen: [...present, ...goingOn] }, begun, known };
}

const keyOf = ({ name, subject }: { readonly name: string; readonly subject: string }) =>
  `${name} ${subject}`;

/** @returns undefined for what is not so, or was so too long ago */
function seeAgain(
  before: Sighting | undefined,
  { name, subject, was }: ConditionNow,
  options: { nowMs: number; waiting: number; isOver: (sighting: Sighting) => boolean },
): Sighting | undefined {
  if (was === undefined) return undefined;
  const { nowMs, waiting, isOver } = options;
  const lastMs = nowMs - was.agoS * 1_000;
  const { eventsWait }: Condition = CONDITIONS[name];
  const seen: Sighting = {
    name,
    subject,
    firstMs: lastMs - was.forS * 1_000,
    lastMs,
    waited: eventsWait === true ? waiting : 0,
    incident: null,
  };
  if (isOver(seen)) return undefined;
  // What nobody has looked at for long may have been otherwise meanwhile; an incident goes on all the same.
  if (before === undefined || (before.incident === null && isOver(before))) return seen;
  return {
    ...seen,
    firstMs: Math.min(before.firstMs, seen.firstMs),
    lastMs: Math.max(before.lastMs, seen.lastMs),
    waited: Math.max(before.waited, seen.waited),
    incident: before.incident,
  };
}
