import { describe, expect, test } from 'vitest';
import { makeBits, openBits } from './bits.ts';
import { freshAtMost, plannedAt } from './plan.ts';
import { plotsOf } from './plots.ts';
import { type End, type FaultSpan, type Sample, type SoakRecord, toRecord } from './record.ts';
import { createRetries } from './retries.ts';
import { sectionOf, withSection } from './section.ts';
import { median, slopeOf } from './statistics.ts';
import { planFaults } from './faults.ts';
import { judge } from './verdict.ts';
import { createRandom } from '../torture/random.ts';

const MIB = 1024 * 1024;
const MINUTES = 60;

const END: End = {
  kind: 'end',
  acknowledged: 1_000,
  onTheBus: 1_001,
  lost: 0,
  unexpected: 0,
  copies: 3,
  events: 1_001,
  outbox: {},
  drainS: 1,
  unplannedExits: 0,
  errorsLogged: {},
};

type Shape = {
  readonly rssMib?: (minute: number) => number;
  readonly fds?: (minute: number) => number;
  readonly pid?: (minute: number) => number;
  readonly connections?: (minute: number) => number;
  readonly outboxMib?: (minute: number) => number;
  readonly outboxDead?: (minute: number) => number;
  readonly bytesPerEvent?: (minute: number) => number;
  readonly deadShare?: (minute: number) => number;
};

const sawtooth = (minute: number) => 100 + (minute % 7) * 3;

function sampleAt(atS: number, shape: Shape): Sample {
  const minute = atS / 60;
  const value = (of: ((minute: number) => number) | undefined, otherwise: number) =>
    of?.(minute) ?? otherwise;
  const acknowledged = 1 + atS * 1_500;
  const bytes = acknowledged * value(shape.bytesPerEvent, 300);
  const dead = (acknowledged * value(shape.deadShare, 5)) / 100;
  return {
    kind: 'sample',
    atS,
    replicas: {
      'replica 1': {
        pid: value(shape.pid, 1),
        rssBytes: value(shape.rssMib, sawtooth(minute)) * MIB,
        fds: value(shape.fds, 90),
        heapBytes: 50 * MIB,
        externalBytes: 5 * MIB,
        handles: 70,
        loopLagP99Ms: 12,
        leads: 1,
      },
    },
    postgres: {
      connections: { 'tallyhook intake': value(shape.connections, 6) },
      tables: {
        events: { tableBytes: bytes / 2, indexBytes: bytes / 2, live: acknowledged - dead, dead },
        outbox_batches: {
          tableBytes: value(shape.outboxMib, 30) * MIB,
          indexBytes: 0,
          live: 10,
          dead: value(shape.outboxDead, 20_000),
        },
      },
      outbox: { pending: 100 },
    },
    broker: { connections: 3, rssBytes: 150 * MIB, queued: 0 },
    sender: {
      answers: { 202: acknowledged, 503: 12 },
      p50Ms: 5,
      p99Ms: 20,
      maxMs: 30,
      acknowledged,
      waiting: 0,
      retrying: 0,
      givenUp: 0,
    },
    subscriber: { received: acknowledged, distinct: acknowledged, unexpected: 0 },
    harnessRssBytes: 200 * MIB,
  };
}

function recordOf(
  shape: Shape,
  { faults = [], end = END }: { faults?: FaultSpan[]; end?: End } = {},
): SoakRecord {
  return {
    start: {
      kind: 'start',
      at: '2026-01-01T00:00:00.000Z',
      command: 'npm run soak',
      seed: 1,
      minutes: MINUTES,
      ratePerS: 10,
      faultEveryS: 180,
      machine: '2 × a processor, 8 GiB',
      versions: { Node: '24' },
    },
    faults,
    samples: Array.from({ length: MINUTES * 6 + 1 }, (_, index) => sampleAt(index * 10, shape)),
    end,
  };
}

const growing = (record: SoakRecord) =>
  judge(record).judgements.flatMap(({ what, verdict }) => (verdict === 'grows' ? [what] : []));

describe('the verdict of a soak', () => {
  test('nothing grows where all goes up and down', () => {
    const verdict = judge(recordOf({}));

    expect(verdict.judgements.map(({ verdict: each }) => each)).not.toContain('not judged');
    expect(growing(recordOf({}))).toEqual([]);
    expect(verdict.passed).toBe(true);
  });

  test.each<[string, Shape]>([
    ['replica 1: resident memory', { rssMib: (minute) => sawtooth(minute) + minute }],
    ['replica 1: open file descriptors', { fds: (minute) => 90 + Math.floor(minute / 2) }],
    ['connections at Postgres', { connections: (minute) => 6 + Math.floor(minute / 5) }],
    ['outbox with its indexes', { outboxMib: (minute) => 30 + minute }],
    ['outbox_batches: dead rows', { outboxDead: (minute) => 20_000 + minute * 400 }],
    ['events: table and indexes', { bytesPerEvent: (minute) => 300 + minute * 2 }],
    ['events: dead rows', { deadShare: (minute) => 20 + minute / 3 }],
  ])('%s that grows is found, and it alone', (what, shape) => {
    expect(growing(recordOf(shape))).toEqual([what]);
    expect(judge(recordOf(shape)).passed).toBe(false);
  });

  test('what grows only while all is warming up does not count', () => {
    expect(growing(recordOf({ rssMib: (minute) => Math.min(300, 100 + minute * 10) }))).toEqual([]);
  });

  test('what a fault does for its time does not count', () => {
    const faults = [41, 47, 53, 59].map(
      (minute): FaultSpan => ({
        kind: 'fault',
        name: 'postgres-kill',
        fromS: minute * 60,
        toS: minute * 60 + 20,
      }),
    );
    const isStruck = (minute: number) =>
      faults.some(({ fromS }) => minute >= fromS / 60 && minute < fromS / 60 + 1.1);
    const shape: Shape = { rssMib: (minute) => (isStruck(minute) ? 100 + minute * 10 : 100) };

    expect(growing(recordOf(shape, { faults }))).toEqual([]);
  });

  test('the outbox may be as large as its backlog explains', () => {
    expect(growing(recordOf({ outboxMib: (minute) => 0.5 + minute / 60 }))).toEqual([]);
  });

  test('a replica that was started anew is compared with its own life alone', () => {
    const shape: Shape = {
      pid: (minute) => (minute < 35 ? 1 : 2),
      rssMib: (minute) => (minute < 35 ? 50 : 200),
    };

    expect(growing(recordOf(shape))).toEqual([]);
  });

  test('too few samples are not judged, and that is no success', () => {
    const record = recordOf({});
    const verdict = judge({ ...record, samples: record.samples.slice(0, 8) });

    expect(new Set(verdict.judgements.map(({ verdict: each }) => each))).toEqual(new Set(['not judged']));
    expect(verdict.passed).toBe(false);
  });

  test.each<[string, Partial<End>]>([
    ['an acknowledged event was never received', { lost: 1 }],
    ['an event of the ledger was never received', { onTheBus: 1_000 }],
    ['something was received that was never sent', { unexpected: 1 }],
    ['the ledger has fewer events than were acknowledged', { events: 999, onTheBus: 999 }],
    ['the outbox is not empty', { outbox: { pending: 1 } }],
    ['an event is parked', { outbox: { parked: 2 } }],
    ['a replica ended by itself', { unplannedExits: 1 }],
    ['nothing was acknowledged at all', { acknowledged: 0, events: 0, onTheBus: 0 }],
    ['the subscriber could not be asked', { unexpected: Number.NaN }],
  ])('it does not hold when %s', (_what, changed) => {
    expect(judge(recordOf({}, { end: { ...END, ...changed } })).passed).toBe(false);
  });

  test('it does not hold when the rate was more than could be served', () => {
    const record = recordOf({});
    const behind = record.samples.map((sample) => ({
      ...sample,
      sender: sample.sender && { ...sample.sender, waiting: sample.atS },
    }));

    expect(judge({ ...record, samples: behind }).passed).toBe(false);
  });

  test('it does not hold for a run that did not reach its end', () => {
    expect(judge({ ...recordOf({}), end: undefined }).passed).toBe(false);
  });
});

describe('the record', () => {
  test('is read as it was written, but for half a line at its end', () => {
    const { start, samples } = recordOf({});
    const lines = [start, samples[0], samples[1]].map((line) => JSON.stringify(line));
    const read = toRecord(`${lines.join('\n')}\n{"kind":"sam`);

    expect(read.samples).toEqual(samples.slice(0, 2));
    expect(read.end).toBeUndefined();
  });

  test('without its first line is refused', () => {
    expect(() => toRecord('{"kind":"sample"}\n')).toThrow('no record');
  });

  test('with gaps is plotted with gaps', () => {
    const record = recordOf({});
    const samples = record.samples.map((sample, index) =>
      index % 9 === 0
        ? { ...sample, postgres: null, sender: null, subscriber: null, replicas: { 'replica 1': null } }
        : sample,
    );

    expect([...plotsOf({ ...record, samples }).values()].join('\n')).not.toMatch(/NaN|undefined/);
    expect(judge({ ...record, samples }).passed).toBe(true);
  });
});

describe('the section', () => {
  const section = sectionOf(recordOf({}), judge(recordOf({})));

  test('says what was run, what grew and what was counted', () => {
    for (const text of ['npm run soak', '| replica 1: resident memory |', '| bounded |', '| as promised |'])
      expect(section).toContain(text);
    expect(section).not.toMatch(/NaN|undefined|Infinity/);
  });

  test('replaces itself and leaves what people wrote around it', () => {
    const page = "# Reliability\n\nBefore.\n\n## An hour's soak\n\nTo be run.\n\n## After\n\nText.\n";
    const once = withSection(page, 'FIRST');
    const twice = withSection(once.replace('## After', 'Written by hand.\n\n## After'), 'SECOND');

    expect(once).not.toContain('To be run.');
    expect(twice).not.toContain('FIRST');
    for (const text of ['Before.', 'SECOND', 'Written by hand.', '## After\n\nText.'])
      expect(twice).toContain(text);
    expect(withSection(twice, 'SECOND')).toBe(twice);
  });

  test('is put at the end of a page that has no place for it', () => {
    expect(withSection('# Reliability\n', 'TEXT')).toMatch(/^# Reliability\n\n## An hour's soak\n\n[^]*TEXT/);
  });
});

describe('what is sent', () => {
  test('each fresh notification comes once and in order, and no copy before its first', () => {
    const planned = Array.from({ length: 20_000 }, (_, place) => plannedAt(place));
    const fresh = planned.flatMap(({ kind, number }) => (kind === 'fresh' ? [number] : []));

    expect(fresh).toEqual(fresh.map((_, index) => index));
    expect(fresh.length).toBeLessThanOrEqual(freshAtMost(20_000));
    const early = planned.filter(
      ({ kind, number }, place) =>
        kind === 'copy' &&
        !planned.slice(0, place).some((one) => one.kind === 'fresh' && one.number === number),
    );
    expect(early).toEqual([]);
  });

  test('of a thousand, one is tampered with, one unknown, twenty are copies', () => {
    const kinds = Array.from({ length: 1_000 }, (_, at) => plannedAt(7_000 + at).kind);
    const count = (wanted: string) => kinds.filter((kind) => kind === wanted).length;

    expect([count('tampered'), count('unknown'), count('copy'), count('fresh')]).toEqual([1, 1, 20, 978]);
  });

  test('what failed is sent again later each time, and beyond the limit not at all', () => {
    const retries = createRetries({ max: 3 });
    for (const [place, attempt] of [
      [10, 2],
      [11, 1],
      [12, 9],
    ] as const)
      expect(retries.add({ place, attempt }, 0)).toBe(true);

    expect(retries.add({ place: 13, attempt: 1 }, 0)).toBe(false);
    expect(retries.takeDue(499)).toBeUndefined();
    expect(retries.takeDue(1_000)?.place).toBe(11);
    expect(retries.takeDue(1_000)?.place).toBe(10);
    expect(retries.takeDue(15_999)).toBeUndefined();
    expect(retries.takeDue(16_000)?.place).toBe(12);
    expect(retries.size()).toBe(0);
  });

  test('sets of numbers tell the first time, and what one lacks of the other', () => {
    const [sent, received] = [openBits(makeBits(100)), openBits(makeBits(100))];
    for (const number of [0, 31, 32, 63, 99]) expect(sent.mark(number)).toBe(true);
    for (const number of [0, 31, 63]) received.mark(number);

    expect(sent.mark(31)).toBe(false);
    expect([sent.count(), received.count(), sent.without(received), received.without(sent)]).toEqual([
      5, 3, 2, 0,
    ]);
    expect(() => sent.mark(1_000)).toThrow(RangeError);
  });
});

const plan = (seed: number) => planFaults({ totalS: 3_600, everyS: 180, random: createRandom(seed) });

describe('the faults', () => {
  test('are the same for the same seed, and leave the beginning and the end alone', () => {
    expect(plan(1)).toEqual(plan(1));
    expect(plan(2)).not.toEqual(plan(1));
    expect(plan(1)).toHaveLength(19);
    expect(plan(1)[0]?.atS).toBe(180);
    for (const { atS, forS } of plan(1)) {
      expect(atS + forS).toBeLessThanOrEqual(3_600 - 160);
      expect(forS).toBeGreaterThanOrEqual(5);
      expect(forS).toBeLessThanOrEqual(20);
    }
  });

  test('come all in turn before one comes again', () => {
    expect(
      new Set(
        plan(3)
          .slice(0, 18)
          .map(({ name }) => name),
      ).size,
    ).toBe(18);
  });
});

describe('the statistics', () => {
  test('the slope follows most of the points and no single one', () => {
    const points = Array.from({ length: 30 }, (_, x) => [x, x === 12 ? 1_000 : 5 + 2 * x] as const);

    expect(slopeOf(points)).toBeCloseTo(2);
  });

  test('the median of nothing is no number', () => {
    expect(median([])).toBeNaN();
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
  });
});
