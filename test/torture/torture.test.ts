// Short runs with fixed seeds, about two minutes in all. The long run is `npm run torture`.

import { expect, test } from 'vitest';
import { KEPT, runFaults, TORTURE_LIMIT } from './kept.ts';

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
  TORTURE_LIMIT,
  async ([, seed, faults]) => {
    expect(await runFaults(seed, faults)).toEqual(KEPT);
  },
);
