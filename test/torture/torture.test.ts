// Short runs with fixed seeds, about two minutes in all; each goes on until all of its faults have struck. The long run is
// `npm run torture`.

import { expect, test } from 'vitest';
import { createGuard } from '../../scripts/services/guard.ts';
import { faultsNamed } from './faults/index.ts';
import { commandLine } from './report.ts';
import { runTorture } from './run.ts';

const PACE = 0.3;
/** A run with fewer events would prove little. */
const LEAST_EVENTS = 200;
/** For start, recovery and drain as well as the faults. */
const LIMIT_MS = 240_000;

const runs: readonly [what: string, seed: number, faults: readonly string[]][] = [
  [
    'processes',
    1,
    ['postgres-kill', 'rabbitmq-kill', 'memory-alarm', 'replica-freeze', 'hand-off-kill', 'hand-off-freeze'],
  ],
  [
    'what outlasts its limit, is refused or falls silent',
    2,
    ['postgres-freeze-long', 'reject-publish', 'postgres-link-half-open', 'disk-full'],
  ],
];

test.for(runs)(
  'every promise is kept while faults of %s strike (seed %i)',
  { timeout: LIMIT_MS },
  async ([, seed, names]) => {
    const settings = { seed, faults: names, pace: PACE, replicas: 2, senders: 4 };
    const guard = createGuard();
    const log: string[] = [];
    try {
      const { verdict, recorded, skipped } = await runTorture({
        ...settings,
        guard,
        faults: faultsNamed(names),
        forMs: 0,
        untilAllStruck: true,
        leastEvents: LEAST_EVENTS,
        log: (line) => log.push(line),
      });
      if (verdict.violations.length > 0) {
        const broken = verdict.violations.map(({ kind, what }) => `${kind}: ${what}`);
        throw new Error(
          [...log, ...broken, `repeat: ${commandLine({ ...settings, minutes: 1 })}`].join('\n'),
        );
      }
      const struck = new Set(recorded.injections.map(({ fault }) => fault));
      const missed = names.filter((name) => !struck.has(name));
      expect(missed.filter((name) => !skipped.some((line) => line.startsWith(`${name} is skipped`)))).toEqual(
        [],
      );
      const struckBetween = recorded.injections.filter(({ unpublished = 0 }) => unpublished > 0);
      const between = new Set(struckBetween.map(({ fault }) => fault));
      expect(names.filter((name) => name.startsWith('hand-off-') && !between.has(name))).toEqual([]);
      expect(verdict.counts.events).toBeGreaterThanOrEqual(LEAST_EVENTS);
    } finally {
      await guard.close();
    }
  },
);
