import { expect, test } from 'vitest';
import { createUnwatchedDecisions } from '../../support/decisions.ts';

function known() {
  const decisions = createUnwatchedDecisions();
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
