// When faults were at work, and on what.

import type { Attempt, Episode, Recorded, Wound } from '../recorded.ts';

export type Span = { readonly fromMs: number; readonly toMs: number };

/** After a fault is healed: timers run out, connections come back, what was held back arrives. */
const AFTERMATH_MS = 2_000;

const overlaps = (a: Span, b: Span) => a.fromMs <= b.toMs && b.fromMs <= a.toMs;

/** From the strike until all was well again. */
function spanOf(episode: Episode): Span {
  return { fromMs: episode.startMs, toMs: (episode.recoveredMs ?? Number.POSITIVE_INFINITY) + AFTERMATH_MS };
}

export const attemptSpan = ({ startMs, endMs }: Attempt): Span => ({ fromMs: startMs, toMs: endMs });

/** The faults that were at work during that time, their aftermath included. */
export function woundsDuring({ wounds, episodes }: Recorded, span: Span): Wound[] {
  const numbers = new Set(
    episodes.filter((episode) => overlaps(spanOf(episode), span)).map(({ number }) => number),
  );
  return wounds.filter(({ episode }) => numbers.has(episode));
}

export const touches = ({ replicas }: Wound, replica: number) =>
  replicas.length === 0 || replicas.includes(replica);
