// The protocol of the relay, as docs/relay.md tells it: in the small instances of the model all promises are kept, and without a
// rule one of them breaks. `npm run model` has the others.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGuard, type Guard } from '../../scripts/services/guard.ts';
import { makeThrowAwayFolder } from '../../scripts/services/folders.ts';
import { IS_SHORT_RUN } from '../only-in-all.ts';
import { INSTANCES, SWITCHED_OFF } from './instances.ts';
import { createModel, type Model } from './spin.ts';

const spin = process.env['TEST_SPIN'] ?? '';

/** Two faults and half a million states. */
const ONLY_IN_COMMAND = 40;
const MEMORY_MB = 1_000;
/** A short run tries a part of the rules. */
const EACH = IS_SHORT_RUN ? 8 : 1;

describe.skipIf(spin === '')('the model of the relay', () => {
  let guard: Guard;
  let model: Model;

  beforeAll(() => {
    guard = createGuard();
    model = createModel({ guard, spin, folder: makeThrowAwayFolder(guard), memoryMb: MEMORY_MB });
  });
  afterAll(() => guard.close());

  test.each(INSTANCES.filter(({ isSmall }) => isSmall))(
    'keeps its promises: $name',
    async ({ settings, property }) => {
      expect(await model.check(settings, property)).toMatchObject({ violation: undefined });
    },
  );

  test.each(SWITCHED_OFF.filter(({ rule }, at) => rule !== ONLY_IN_COMMAND && at % EACH === 0))(
    'without R$rule a promise breaks: $breaks',
    async ({ rule, settings, property, breaks }) => {
      const { violation } = await model.check({ ...settings, without: rule }, property);
      expect(violation).toBe(breaks);
    },
  );

  test('tells the shortest way to what breaks', async () => {
    const story = await model.story({ events: 2, nacks: 1, without: 35 });
    expect(story?.filter((line) => /nacked|a retry is due/.test(line))).toEqual([
      expect.stringMatching(/^event 1 is nacked to replica \d$/),
    ]);
    expect(story?.at(-1)).toBe('the first copy of event 2 arrives');
    expect(await model.story({ events: 1, nacks: 1 })).toBeUndefined();
  });
});
