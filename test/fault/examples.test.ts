// The subscribers in examples/ go through the same scenario at the same time, each with a queue and a database of its own.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EVENTS_PER_JOB, lifeOf, ODD_EFFECTS } from '../support/example-events.ts';
import {
  AFTER_KILLS,
  AFTER_POISON,
  KILLED,
  LAST,
  playScenario,
  POISON,
  type Run,
  type Scenario,
  STOPPED,
  TAKEN_OVER,
} from '../support/example-scenario.ts';
import { type Language, PROGRAMS } from '../support/examples.ts';
import { patience } from '../support/patience.ts';

let scenario: Scenario | undefined;

beforeAll(async () => {
  scenario = await playScenario(PROGRAMS);
}, patience(300_000));

afterAll(() => scenario?.[Symbol.asyncDispose]());

function runOf(language: Language): Run {
  const run = scenario?.runs.find((other) => other.language === language);
  if (run === undefined || run.trouble !== undefined) throw run?.trouble;
  return run;
}

const effectsOf = (language: Language) => runOf(language).example.store.effects();

for (const language of ['Node', 'Python', 'Go'] as const) {
  const isMissing = !PROGRAMS.has(language);
  const reason = isMissing ? ' (skipped: what it needs is not on this machine)' : '';

  describe.skipIf(isMissing)(`the subscriber in ${language}${reason}`, () => {
    const jobs = [...KILLED, ...STOPPED, ...TAKEN_OVER];

    test('handles each event once, and those of a job in order, over kills of the broker and copies', async () => {
      const found = await effectsOf(language);

      const byJob = Object.groupBy(found, ({ job }) => job);
      for (const job of jobs) expect(byJob[job]).toEqual(lifeOf(job));
      for (const job of [AFTER_KILLS, AFTER_POISON, LAST]) expect(byJob[job]).toHaveLength(1);
      expect(found).toHaveLength(jobs.length * EVENTS_PER_JOB + 3 + ODD_EFFECTS.length);
    });

    test('ends the event at work when it is stopped, and loses and repeats none', () => {
      const { afterStop, exits } = runOf(language);

      const before = KILLED.length * EVENTS_PER_JOB + 1;
      const all = before + STOPPED.length * EVENTS_PER_JOB;
      expect(afterStop?.effects).toBeGreaterThan(before);
      expect(afterStop?.left).toBe(all - (afterStop?.effects ?? 0));
      expect(exits).toEqual(Array.from({ length: 3 }, () => ({ code: 0, signal: null })));
    });

    test('puts what it cannot handle into the dead-letter queue, and goes on', async () => {
      const { deadLetters, example } = runOf(language);

      expect(deadLetters).toEqual([
        `default:${POISON}:processing:0`,
        'default:job_without_json:processing:0',
        'default:job_without_id:processing:0',
      ]);
      expect((await effectsOf(language)).map(({ job }) => job)).toContain(AFTER_POISON);
      expect(await scenario?.messagesIn(example.queue)).toBe(0);
    });

    test('reads the fields that it knows by their exact names, and no others', async () => {
      const found = await effectsOf(language);

      expect(found.filter(({ job }) => job === 'job_odd')).toEqual(ODD_EFFECTS);
    });

    // The database of the Python example is a file: it is always there.
    test('gives up no event while its database is away', async () => {
      const { example } = runOf(language);

      expect((await effectsOf(language)).map(({ job }) => job)).toContain(LAST);
      expect(await scenario?.messagesIn(`${example.queue}.dead`)).toBe(0);
    });
  });
}
