// The short run: fixed seeds, each with faults of its own, about two minutes in all. The long one is `npm run torture`.

import { expect, test } from 'vitest';
import { createGuard } from '../../scripts/services/guard.ts';
import { brokerFaults } from './faults/broker.ts';
import type { Fault } from './faults/index.ts';
import { insideFaults } from './faults/inside.ts';
import { networkFaults } from './faults/network.ts';
import { processFaults } from './faults/processes.ts';
import { commandLine } from './report.ts';
import { runTorture } from './run.ts';

const MINUTES = 0.5;
const PACE = 0.4;
/** Beside the faults: start, recovery, drain. */
const LIMIT_MS = 240_000;

const runs: readonly [what: string, seed: number, faults: readonly Fault[]][] = [
  ['processes, the broker and what is inside', 1, [...processFaults, ...brokerFaults, ...insideFaults]],
  ['the network and what is inside', 2, [...networkFaults, ...insideFaults]],
];

test.for(runs)(
  'every promise is kept while faults of %s strike (seed %i)',
  { timeout: LIMIT_MS },
  async ([, seed, faults]) => {
    const names = faults.map(({ name }) => name);
    const settings = { seed, minutes: MINUTES, faults: names, pace: PACE, replicas: 2, senders: 8 };
    const guard = createGuard();
    const log: string[] = [];
    try {
      const { verdict, recorded } = await runTorture({
        ...settings,
        guard,
        faults,
        forMs: MINUTES * 60_000,
        log: (line) => log.push(line),
      });
      if (verdict.violations.length > 0) {
        const broken = verdict.violations.map(({ kind, what }) => `${kind}: ${what}`);
        throw new Error([...log, ...broken, `repeat: ${commandLine(settings)}`].join('\n'));
      }
      // A run in which little happened would prove little.
      expect(recorded.episodes.length).toBeGreaterThan(2);
      expect(verdict.counts.events).toBeGreaterThan(200);
    } finally {
      await guard.close();
    }
  },
);
