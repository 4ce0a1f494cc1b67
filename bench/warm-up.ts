// Warms a subject up before its window begins, until its CPU time for an event is steady or the time for it is over.

import { assertClean, type LoadPlan, type LoadSecond } from './load/plan.ts';
import { startGenerator } from './parts.ts';
import type { Figures } from './results.ts';
import { createSettling } from './settling.ts';
import type { Stage } from './stage.ts';
import type { Subscriber } from './subscribing.ts';
import { cpuSecondsOf } from './usage.ts';

type Warmth = Pick<Figures, 'warmUpS' | 'isSteady'>;

export type WarmUp = {
  /** To be called with each second. True once, when the warm-up is enough. */
  readonly isSteadyAfter: (second: Pick<LoadSecond, 'atS' | 'answers'>) => boolean;
  /** The warm-up is over. @returns how it went */
  readonly end: () => Warmth;
};

const CONCURRENCY = 64;

/** Watches the processes of the subject while a generator warms it up. */
export function watchWarmUp(pids: readonly number[]): WarmUp {
  const settle = createSettling();
  let warmth: { warmUpS: number; isSteady: boolean } = { warmUpS: 0, isSteady: false };
  let isOver = false;
  return {
    isSteadyAfter: ({ atS, answers }) => {
      if (isOver || warmth.isSteady) return false;
      const answered = Object.values(answers).reduce((sum, count) => sum + count, 0);
      const { subject: cpuS } = cpuSecondsOf({ subject: pids });
      warmth = { warmUpS: atS, isSteady: settle({ answers: answered, cpuS }) };
      return warmth.isSteady;
    },
    end: () => {
      isOver = true;
      return warmth;
    },
  };
}

/** By a closed loop of its own, before another load. Resolves when its events have arrived. */
export async function warmUpClosed(
  stage: Stage,
  plan: LoadPlan,
  { subject, subscriber }: { subject: { pids: readonly number[] }; subscriber: Subscriber | undefined },
): Promise<WarmUp> {
  const warmUp = watchWarmUp(subject.pids);
  const generator = await startGenerator(
    stage.parts,
    {
      ...plan,
      run: `${plan.run}w`,
      loop: { kind: 'closed', concurrency: CONCURRENCY },
      durationS: plan.warmUpS,
      warmUpS: 0,
      stock: 0,
    },
    (second) => {
      if (warmUp.isSteadyAfter(second)) generator.stop();
    },
  );
  const report = await generator.go().report;
  await generator.end();
  warmUp.end();
  assertClean(report);
  await subscriber?.until('others', report.acknowledged);
  return warmUp;
}
