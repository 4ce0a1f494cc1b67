// When a condition becomes an incident and when that ends, look by look.

import { expect, test } from 'vitest';
import { CONDITIONS, type ConditionName } from '../../../src/base/conditions.ts';
import type { ConditionNow } from '../../../src/watch/conditions-now.ts';
import { judge, type Memory } from '../../../src/watch/judge.ts';

const so = (name: ConditionName, was = { agoS: 0, forS: 0 }, subject = ''): ConditionNow => ({
  name,
  subject,
  severity: CONDITIONS[name].severity,
  isSo: true,
  summary: `${name}.`,
  value: 1,
  was,
});

/** One look after another, each at its second. */
function createLooks(memory: Memory = { seen: [] }) {
  let left = memory;
  let ids = 0;
  return (second: number, conditions: ConditionNow[], waiting = 0) => {
    const { memory: next, ...judged } = judge({
      memory: left,
      conditions,
      nowMs: second * 1_000,
      waiting,
      newId: () => `incident-${(ids += 1)}`,
    });
    left = JSON.parse(JSON.stringify(next)) as Memory; // as it goes through the database
    return {
      begun: judged.begun.map(({ now, beganMs, waited }) => [now.name, beganMs / 1_000, waited]),
      open: judged.known.filter(({ endedMs }) => endedMs === null).map(({ name, waited }) => [name, waited]),
      ended: judged.known.flatMap(({ name, endedMs }) => (endedMs === null ? [] : [[name, endedMs / 1_000]])),
      left,
    };
  };
}

test('what lasts as long as its hold is an incident, which began when it was first seen', () => {
  const look = createLooks();
  expect(look(1_000, [so('broker-away')], 3)).toMatchObject({ begun: [], open: [] });
  expect(look(1_059, [so('broker-away')], 9)).toMatchObject({ begun: [] });
  expect(look(1_060, [so('broker-away')], 5)).toMatchObject({ begun: [['broker-away', 1_000, 9]], open: [] });
  expect(look(1_070, [so('broker-away')], 12)).toMatchObject({ begun: [], open: [['broker-away', 12]] });
});

test('what ends before its hold leaves nothing', () => {
  const look = createLooks();
  look(1_000, [so('broker-away')]);
  expect(look(1_010, [])).toEqual({ begun: [], open: [], ended: [], left: { seen: [] } });
  expect(look(1_060, [so('broker-away')])).toMatchObject({ begun: [] });
});

test('an incident ends when it was not so for five minutes, at the time when it was last so', () => {
  const look = createLooks();
  expect(look(1_000, [so('conflicts')])).toMatchObject({ begun: [['conflicts', 1_000, 0]] });
  look(1_010, [so('conflicts')]);
  expect(look(1_309, [])).toMatchObject({ open: [['conflicts', 0]], ended: [] });
  expect(look(1_310, [])).toMatchObject({ open: [], ended: [['conflicts', 1_010]], left: { seen: [] } });
});

test('one that comes and goes is one incident', () => {
  const look = createLooks();
  look(1_000, [so('outbox-lag')]);
  for (let second = 1_010; second < 3_000; second += 100) {
    expect(look(second, [so('outbox-lag')])).toMatchObject({ begun: [], ended: [] });
    expect(look(second + 50, [])).toMatchObject({ begun: [], ended: [] });
  }
});

test('sources have incidents of their own', () => {
  const look = createLooks();
  const both = [so('unauthorized-storm', undefined, 'a'), so('unauthorized-storm', undefined, 'b')];
  expect(look(1_000, both).begun).toHaveLength(2);
  expect(look(1_010, both.slice(1)).begun).toEqual([]);
  expect(look(1_300, both.slice(1)).ended).toEqual([['unauthorized-storm', 1_000]]);
});

test('an outage that is over when it is seen first is an incident with its own times', () => {
  const look = createLooks();
  expect(look(1_000, [so('postgres-away', { agoS: 10, forS: 59 })]).begun).toEqual([]);
  expect(look(1_010, [so('postgres-away', { agoS: 20, forS: 90 })]).begun).toEqual([
    ['postgres-away', 900, 0],
  ]);
  expect(look(1_280, [so('postgres-away', { agoS: 290, forS: 90 })])).toMatchObject({ begun: [], ended: [] });
  expect(look(1_290, [so('postgres-away', { agoS: 300, forS: 90 })])).toMatchObject({
    ended: [['postgres-away', 990]],
    left: { seen: [] },
  });
  expect(look(1_300, [so('postgres-away', { agoS: 310, forS: 90 })])).toMatchObject({ begun: [], open: [] });
});

test('what nobody looked at for long begins anew, but an incident goes on', () => {
  const pending = createLooks();
  pending(1_000, [so('quarantine')]);
  expect(pending(9_000, [so('quarantine')]).begun).toEqual([]);

  const open = createLooks();
  open(1_000, [so('conflicts')]);
  expect(open(9_000, [so('conflicts')])).toMatchObject({ begun: [], open: [['conflicts', 0]] });
});

test('an incident of a condition that this version does not know ends by itself', () => {
  const seen = [
    { name: 'of-tomorrow', subject: '', firstMs: 0, lastMs: 1_000_000, waited: 4, incident: 'x' },
  ];
  const look = createLooks({ seen });
  expect(look(1_010, [])).toMatchObject({ open: [['of-tomorrow', 4]] });
  expect(look(1_300, [])).toMatchObject({ ended: [['of-tomorrow', 1_000]] });
});
