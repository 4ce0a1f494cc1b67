// The alert rules say the same as the conditions that the service looks at by itself: names, severities, thresholds, times, reasons.

import { describe, expect, test } from 'vitest';
import {
  CONDITIONS,
  type Condition,
  type ConditionName,
  END_HOLD_S,
  SOURCE_SILENT,
  UNAUTHORIZED_STORM,
} from '../../../src/base/conditions.ts';
import { makeFaster } from '../../alerts/faster.ts';
import { type AlertRule, readAlertRules, secondsOf } from '../../support/alert-rules.ts';
import { rowsUnder } from '../../support/deploy-page.ts';

const rules = readAlertRules();
const ruleOf = (name: ConditionName) => rules.find(({ condition }) => condition === name) as AlertRule;

/** What an expression compares with, and its windows and the time before the alert, in seconds. */
const numbersOf = ({ expr, for: held }: AlertRule): number[] => [
  ...[...expr.matchAll(/[<>]=? ([\d.]+)/g)].map(([, value]) => Number(value)),
  ...[...expr.matchAll(/\[(\w+)\]/g)].map(([, window = '']) => secondsOf(window)),
  secondsOf(held),
];

const commentOf = ({ text }: AlertRule): string =>
  [...text.matchAll(/^ +# (.+)$/gm)].map(([, line]) => line).join(' ');

test('there is a rule for each condition and no other', () => {
  expect(rules.map(({ condition }) => condition)).toEqual(Object.keys(CONDITIONS).toSorted());
});

describe.each(Object.entries<Condition>(CONDITIONS))('%s', (name, condition) => {
  const rule = ruleOf(name as ConditionName);

  test('the rule has its name, its severity and its times', () => {
    const words = name.split('-').map((word) => word[0]?.toUpperCase() + word.slice(1));
    expect(rule).toMatchObject({
      alert: `Tallyhook${words.join('')}`,
      labels: { severity: condition.severity },
    });
    expect(secondsOf(rule.for)).toBe(condition.holdS);
    expect(secondsOf(rule.keep_firing_for)).toBe(END_HOLD_S);
  });

  // That metric counts those of the last hour by itself.
  test.skipIf(name === 'conflicts')('the rule has its threshold', () => {
    expect(numbersOf(rule)).toContain(condition.threshold);
  });

  test('a comment above the threshold has its reason', () => {
    expect(commentOf(rule)).toContain(condition.reason);
    expect(rule.text.indexOf('# ')).toBeLessThan(rule.text.indexOf('expr:'));
  });

  test('the rule is one over all instances, of a source where the condition is', () => {
    const isOfInstance = /without \((?:pool|face), reason\)|^increase\(/.test(rule.expr);
    const isOfSource = /by \(namespace, job, source\)/.test(rule.expr);
    expect(isOfSource).toBe(condition.ofSource === true);
    expect(isOfInstance).toBe(['starved-pool', 'connections-dropped', 'log-dropped'].includes(name));
    expect(isOfInstance || / by \(namespace, job/.test(rule.expr)).toBe(true);
  });

  test('it says what is so, what to do, and where the runbook has more', () => {
    const { summary, description, what_to_do, runbook_url } = rule.annotations;
    for (const text of [summary, description, what_to_do]) expect(text?.trim()).toMatch(/\w{3}/);
    expect(runbook_url).toMatch(new RegExp(`^https://docs\\.example\\.com/.+/runbook\\.md#${name}$`));
  });
});

test('a silent source and a storm have all their thresholds', () => {
  expect(numbersOf(ruleOf('source-silent'))).toEqual(
    expect.arrayContaining([SOURCE_SILENT.deliveredHours, SOURCE_SILENT.maxS]),
  );
  expect(numbersOf(ruleOf('unauthorized-storm'))).toEqual(
    expect.arrayContaining([UNAUTHORIZED_STORM.share, UNAUTHORIZED_STORM.minutes * 60]),
  );
});

test('docs/observability.md has them all, as they are', () => {
  const rows = Object.entries<Condition>(CONDITIONS).map(([name, { when, severity, reason }]) => [
    `[\`${name}\`](runbook.md#${name})`,
    when,
    ruleOf(name as ConditionName).for,
    severity,
    reason,
  ]);
  expect(rowsUnder('Alert rules', 'observability.md')).toEqual(rows);
});

test('`npm run alerts` makes their times shorter, and none too short', () => {
  const faster = { by: 30, leastS: 10 };
  const changed = (name: ConditionName) => makeFaster(ruleOf(name).text, faster);
  expect(changed('stuck-jobs')).toMatch(/for: 20s\n[^]+keep_firing_for: 10s/);
  expect(changed('no-leader')).toContain('for: 10s');
  expect(changed('outbox-lag')).toMatch(/_seconds\) > 10\n +for: 0s/);
  expect(changed('source-silent')).toMatch(/> 120\n[^]+< 20160\n/);
  expect(changed('disk-full')).toMatch(/\[10s\]\)\) > 0[^]+\[10s\]\)[^]+offset 10s/);
  expect(changed('unauthorized-storm')).toMatch(/\[20s\]\)\) >= 100[^]+> 0\.5/);
});
