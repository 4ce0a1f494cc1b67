// A run of the torture as a test: it goes on until each of its faults has struck, and every promise must have been kept.

import { createGuard } from '../../scripts/services/guard.ts';
import { patience } from '../support/patience.ts';
import { faultsNamed } from './faults/index.ts';
import { commandLine } from './report.ts';
import { runTorture } from './run.ts';

const PACE = 0.3;
/** A run with fewer events would prove little. */
const LEAST_EVENTS = 200;

/** For start, recovery and drain as well as the faults. */
export const TORTURE_LIMIT = { timeout: patience(240_000) };

/** What a run ends with that kept every promise and proved it. */
export const KEPT = { missed: [], outsideHandOff: [], hasEnoughEvents: true };

/**
 * @returns what shows that the run proved something: each fault struck, those of the hand-off in its midst, and events came.
 * @throws Error that says which promise was broken, and how to repeat the run
 */
export async function runFaults(seed: number, names: readonly string[]): Promise<object> {
  const settings = { seed, faults: names, pace: PACE, replicas: 2, senders: 4 };
  const guard = createGuard();
  const log: string[] = [];
  try {
    const run = await runTorture({
      ...settings,
      guard,
      faults: faultsNamed(names),
      forMs: 0,
      untilAllStruck: true,
      leastEvents: LEAST_EVENTS,
      log: (line) => log.push(line),
    });
    const { verdict, recorded, skipped } = run;
    if (verdict.violations.length > 0) {
      const broken = verdict.violations.map(({ kind, what }) => `${kind}: ${what}`);
      throw new Error([...log, ...broken, `repeat: ${commandLine({ ...settings, minutes: 1 })}`].join('\n'));
    }
    const struck = new Set(recorded.injections.map(({ fault }) => fault));
    const isSkipped = (name: string) => skipped.some((line) => line.startsWith(`${name} is skipped`));
    const between = new Set(
      recorded.injections.filter(({ unpublished = 0 }) => unpublished > 0).map(({ fault }) => fault),
    );
    return {
      missed: names.filter((name) => !struck.has(name) && !isSkipped(name)),
      outsideHandOff: names.filter((name) => name.startsWith('hand-off-') && !between.has(name)),
      hasEnoughEvents: verdict.counts.events >= LEAST_EVENTS,
    };
  } finally {
    await guard.close();
  }
}
