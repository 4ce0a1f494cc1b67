import { expect, test } from 'vitest';
import { overdueSecrets } from '../../../src/ledger/looks/overdue.ts';

const NOW_MS = Date.parse('2026-12-01T12:00:00Z');
const agoMs = (seconds: number) => NOW_MS - seconds * 1_000;
const look = (source: string, ...secrets: [fingerprint: string, lastMatchedS: number][]) => ({
  source,
  secrets: secrets.map(([fingerprint, lastMatchedS]) => ({ fingerprint, lastMatchedS })),
});

test('a secret that signed after its time is overdue, and one that signed before it is not', () => {
  const looks = [look('a', ['old', 60], ['new', 1]), look('b', ['old', 60])];
  const expiring = [
    { source: 'a', fingerprint: 'old', untilMs: agoMs(61) },
    { source: 'b', fingerprint: 'old', untilMs: agoMs(59) },
  ];
  expect(overdueSecrets(looks, expiring, NOW_MS)).toEqual([{ source: 'a', lastUsedS: 60 }]);
});

test('of several such secrets of a source the last use counts', () => {
  const expiring = ['old', 'older'].map((fingerprint) => ({
    source: 'a',
    fingerprint,
    untilMs: agoMs(3_600),
  }));
  expect(overdueSecrets([look('a', ['old', 60], ['older', 30])], expiring, NOW_MS)).toEqual([
    { source: 'a', lastUsedS: 30 },
  ]);
});

test('a secret without a time, and one that never signed, are not overdue', () => {
  expect(overdueSecrets([look('a', ['old', 60])], [], NOW_MS)).toEqual([]);
  expect(overdueSecrets([], [{ source: 'a', fingerprint: 'old', untilMs: 0 }], NOW_MS)).toEqual([]);
});
