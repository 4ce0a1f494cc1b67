// When faults were at work, and on which replicas.

import type { Attempt, Episode, Recorded, Injection } from '../recorded.ts';

export type Span = { readonly fromMs: number; readonly toMs: number };

/** After a fault is healed, timers still run out, connections come back, and delayed bytes arrive. */
export const AFTERMATH_MS = 2_000;

const overlaps = (a: Span, b: Span) => a.fromMs <= b.toMs && b.fromMs <= a.toMs;

/** From the strike until everything had recovered, and its aftermath. */
function spanOf(episode: Episode): Span {
  return { fromMs: episode.startMs, toMs: (episode.recoveredMs ?? Number.POSITIVE_INFINITY) + AFTERMATH_MS };
}

export const attemptSpan = ({ startMs, endMs }: Attempt): Span => ({ fromMs: startMs, toMs: endMs });

/** The faults that were at work in that time, with their aftermath. */
export function injectionsDuring({ injections, episodes }: Recorded, span: Span): Injection[] {
  const numbers = new Set(
    episodes.filter((episode) => overlaps(spanOf(episode), span)).map(({ number }) => number),
  );
  return injections.filter(({ episode }) => numbers.has(episode));
}

export const touches = ({ replicas }: Injection, replica: number) =>
  replicas.length === 0 || replicas.includes(replica);
