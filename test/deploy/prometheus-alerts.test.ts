// A short `npm run alerts`: a real Prometheus beside real faults. That run has one for each alert.

import { expect, test } from 'vitest';
import { CONDITIONS } from '../../src/base/conditions.ts';
import { createGuard } from '../../scripts/services/guard.ts';
import { FAULTS } from '../alerts/faults.ts';
import { tryAlerts } from '../alerts/run.ts';
import { patience } from '../support/patience.ts';

const prometheus = process.env['TEST_PROMETHEUS'];
const CHOSEN = ['RabbitMQ cannot be reached', 'too many connections'];
const FASTER = 30;

test('there is a fault for each alert', () => {
  expect([...new Set(FAULTS.flatMap(({ fires }) => fires))].toSorted()).toEqual(
    Object.keys(CONDITIONS).toSorted(),
  );
});

test.skipIf(!prometheus)(
  'the expected alerts fire once and resolve, and the others stay silent',
  { timeout: patience(300_000) },
  async () => {
    await using guard = createGuard();
    const outcomes = await tryAlerts({
      guard,
      program: prometheus as string,
      faults: FAULTS.filter(({ name }) => CHOSEN.includes(name)),
      by: FASTER,
      log: () => {},
    });
    expect(outcomes).toEqual(
      CHOSEN.map((fault) => ({
        fault,
        expected: expect.any(Array) as unknown,
        firedS: expect.any(Number) as unknown,
        resolvedS: expect.any(Number) as unknown,
        others: [],
      })),
    );
  },
);
