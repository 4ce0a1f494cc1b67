import { expect, test } from 'vitest';
import { FAULTS } from './faults/index.ts';
import { drawJob } from './notices.ts';
import { createRandom } from './random.ts';
import { type PlannedEpisode, planEpisodes } from './schedule.ts';

function planned(seed: number, count: number): PlannedEpisode[] {
  const plan = planEpisodes(createRandom(seed), FAULTS);
  return Array.from({ length: count }, () => plan.next().value as PlannedEpisode);
}
const told = (episodes: readonly PlannedEpisode[]) =>
  episodes.map(({ gapMs, faults }) => [
    gapMs,
    faults.map(({ fault, atMs, forMs }) => [fault.name, atMs, forMs]),
  ]);

test('a seed alone decides which faults strike, when and for how long', () => {
  expect(told(planned(7, 60))).toEqual(told(planned(7, 60)));
  expect(told(planned(7, 60))).not.toEqual(told(planned(8, 60)));
});

test('each fault strikes alone before any does so again, and faults of one subject never strike together', () => {
  const episodes = planned(7, 90);
  const alone = episodes
    .filter(({ faults }) => faults.length === 1)
    .map(({ faults }) => faults[0]?.fault.name);
  expect(new Set(alone.slice(0, FAULTS.length)).size).toBe(FAULTS.length);
  const together = episodes.filter(({ faults }) => faults.length > 1);
  expect(together).toHaveLength(30);
  for (const { faults } of together)
    expect(new Set(faults.map(({ fault }) => fault.subject)).size).toBe(faults.length);
});

test('a seed alone decides what is sent, whatever else was drawn before', () => {
  const other = createRandom(7);
  other.unit();
  expect(drawJob(other.fork('job 1'), 'a')).toEqual(drawJob(createRandom(7).fork('job 1'), 'a'));
});

test('the history has every kind of delivery in it', () => {
  const random = createRandom(1);
  const notices = Array.from({ length: 400 }, (_, job) =>
    drawJob(random.fork(`job ${job}`), `${job}`),
  ).flat();
  expect(new Set(notices.map(({ kind }) => kind))).toEqual(
    new Set(['new', 'repeat', 'conflict', 'quarantine', 'malformed', 'forged', 'refused']),
  );
  expect(new Set(notices.flatMap(({ forgery }) => forgery ?? [])).size).toBe(6);
  expect(notices.some(({ isTwin }) => isTwin)).toBe(true);
  expect(notices.some(({ isRace }) => isRace)).toBe(true);
  expect(notices.some(({ isBeside }) => isBeside)).toBe(true);
});

test('xoshiro128** spreads its draws evenly', () => {
  const random = createRandom(3);
  const counts = Array.from({ length: 10 }, () => 0);
  for (let draw = 0; draw < 10_000; draw++) {
    const drawn = random.whole(0, 9);
    counts[drawn] = (counts[drawn] ?? 0) + 1;
  }
  for (const count of counts) expect(count).toBeGreaterThan(800);
});
