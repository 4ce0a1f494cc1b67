// The highest rate of a closed loop, of which open loops take their shares. Pure.

import { confirmed } from './figures.ts';
import { type Run, spreadOf, type SubjectName } from './results.ts';

const CLOSED_LOOPS = ['bus', 'concurrency', 'rates'] as const;

export type Peak = {
  readonly case: (typeof CLOSED_LOOPS)[number];
  readonly variant: string;
  /** Events confirmed on the bus, in the median of the rounds. */
  readonly perS: number;
};

/** Undefined if no closed loop was measured. */
export function peakOf(runs: readonly Run[], subject: SubjectName): Peak | undefined {
  const found = CLOSED_LOOPS.flatMap((name) => {
    const own = runs.filter((run) => run.case === name && run.subject === subject);
    const variants = new Set(own.map(({ variant }) => variant).filter((each) => /connections?$/.test(each)));
    return [...variants].flatMap((variant): Peak[] => {
      const perS = spreadOf(own, { case: name, variant }, confirmed)?.median;
      return perS === undefined ? [] : [{ case: name, variant, perS }];
    });
  });
  return found.toSorted((a, b) => b.perS - a.perS)[0];
}
