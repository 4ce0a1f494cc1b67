import { expect, test } from 'vitest';
import { createTestDecisions } from '../../support/decisions.ts';

function known() {
  const decisions = createTestDecisions();
  let forgotten = 0;
  decisions.onNew(() => {
    forgotten += 1;
  });
  decisions.note('1', decisions.ask());
  return { ...decisions, forgotten: () => forgotten };
}

test('a version that changes makes the relay forget, and one that stays does not', () => {
  const decisions = known();
  expect(decisions.forgotten()).toBe(1);

  expect(decisions.note('1', decisions.ask())).toBe(true);
  expect(decisions.forgotten()).toBe(1);
  expect(decisions.note('2', decisions.ask())).toBe(true);

  expect(decisions.forgotten()).toBe(2);
});

test('an answer that was overtaken by a newer version changes nothing, and what came with it is not to be used', () => {
  const decisions = known();
  const slow = decisions.ask();
  decisions.note('2', decisions.ask());

  expect(decisions.note('1', slow)).toBe(false);

  expect(decisions.forgotten()).toBe(2);
  expect(decisions.note('2', decisions.ask())).toBe(true);
  expect(decisions.forgotten()).toBe(2);
});

test('a lower version is a decision too, since a failover can take numbers back', () => {
  const decisions = known();
  decisions.note('5', decisions.ask());

  decisions.note('4', decisions.ask());

  expect(decisions.forgotten()).toBe(3);
});

test('what is in memory may be published while the last answer is fresh, counted from its question', () => {
  let atMs = 0;
  const decisions = createTestDecisions(() => atMs);
  expect(decisions.areKnown()).toBe(true); // nobody watches
  decisions.watch();
  expect(decisions.areKnown()).toBe(false);

  decisions.note('1', decisions.ask());
  atMs = 700;
  expect(decisions.areKnown()).toBe(true);
  const slow = decisions.ask();
  atMs = 1_600;
  expect(decisions.areKnown()).toBe(false);
  decisions.note('1', slow);
  expect(decisions.areKnown()).toBe(false);

  decisions.stop();
});

test('when no answer is fresh for five seconds, an old one does, so that events do not wait for ever', () => {
  let atMs = 0;
  const decisions = createTestDecisions(() => atMs);
  decisions.watch();
  decisions.note('1', decisions.ask());
  for (const each of [2_000, 4_000, 6_000]) {
    const slow = decisions.ask();
    atMs = each;
    decisions.note('1', slow);
    expect(decisions.areKnown()).toBe(each > 5_000);
  }
  atMs = 6_800;
  expect(decisions.areKnown()).toBe(false);

  decisions.stop();
});
