import { describe, expect, test } from 'vitest';
import { arrivals } from '../../bench/arrivals.ts';
import { fillIn } from '../../bench/document.ts';
import { servedOf, withinLimit } from '../../bench/floods.ts';
import { flatness } from '../../bench/long-cases.ts';
import { parsePgbench } from '../../bench/pgbench.ts';
import { joinResults, type Results, type Run, spreadOf } from '../../bench/results.ts';
import { aboutTable, floodsTable, markdown } from '../../bench/tables.ts';
import { targetsOf } from '../../bench/targets.ts';
import { parseStat } from '../../bench/usage.ts';

function run(name: Run['case'], subject: Run['subject'], figures: Run['figures'], variant = ''): Run {
  return { case: name, subject, variant, round: 1, startedAt: '2026-11-21T00:00:00Z', figures };
}

function measured(command: string, startedAt: string, endedAt: string): Results {
  const about = { hardware: {}, versions: {}, settings: {}, command, commit: 'abc', startedAt, endedAt };
  return about as unknown as Results;
}

const latency = { count: 1, p50Ms: 1, p90Ms: 1, p99Ms: 1, p999Ms: 1, maxMs: 1, meanMs: 1 };

/** A flood's run in which everything took as long at worst, and everything but `bad` deliveries was answered. */
function besideFlood(found: { worstMs: number; rssGrowthMiB: number; bad?: number }, variant = ''): Run {
  const { worstMs, rssGrowthMiB, bad = 0 } = found;
  const livez = { sent: 100, good: 100, latency: { ...latency, maxMs: worstMs } };
  return run(
    'floods',
    'tallyhook',
    { kept: { ...livez, good: 100 - bad }, fresh: livez, livez, rssGrowthMiB },
    variant,
  );
}

const ofFloods = (runs: readonly Run[]) => targetsOf(runs).slice(-3);

describe('floods', () => {
  const good = besideFlood({ worstMs: 100, rssGrowthMiB: 10 }, '200 that pipeline');

  test('the worst of them decides, each target by itself', () => {
    const slow = besideFlood({ worstMs: 1_600, rssGrowthMiB: 10 }, '1,500 that stall');
    const large = besideFlood({ worstMs: 100, rssGrowthMiB: 300 }, '5,000 idle');
    expect(ofFloods([good, slow, large]).map(({ found, verdict, from }) => [found, verdict, from])).toEqual([
      ['1,600 ms', 'missed', '1,500 that stall; the worst of 3'],
      ['1,600 ms', 'missed', '1,500 that stall; the worst of 3'],
      ['300 MiB', 'missed', '5,000 idle; the worst of 3'],
    ]);
  });

  test('quick answers to most deliveries do not make up for one without a 2xx', () => {
    const targets = ofFloods([good, besideFlood({ worstMs: 100, rssGrowthMiB: 10, bad: 1 })]);
    expect(targets.map(({ found, verdict }) => [found, verdict])).toEqual([
      ['not all answered', 'missed'],
      ['100 ms', 'target met'],
      ['10 MiB', 'target met'],
    ]);
  });

  test('a row for each says what it missed', () => {
    const bad = besideFlood({ worstMs: 2_000, rssGrowthMiB: 10 }, '5,000 idle');
    const table = floodsTable([good, bad, run('bus', 'tallyhook', {})]).split('\n');
    expect(table.slice(2)).toEqual([
      '| 200 that pipeline | 100 of 100 | 100 ms (1.0 ms) | 100 of 100 | 100 ms (1.0 ms) | 100 of 100 | 100 ms | +10 MiB | met |',
      '| 5,000 idle | 100 of 100 | 2000 ms (1.0 ms) | 100 of 100 | 2000 ms (1.0 ms) | 100 of 100 | 2000 ms | +10 MiB | **missed**: answer, livez |',
    ]);
  });

  test('what was refused, lost, late or never answered was sent and was not good', () => {
    const answersInAll = { '200': 5, '202': 2, '503': 1, lost: 1, late: 1 };
    expect(servedOf({ answersInAll, unanswered: 3, latency })).toEqual({ sent: 13, good: 7, latency });
  });

  test('more connections than a process may open are left out, and it says so', () => {
    const wish = {
      name: 'idle',
      kind: 'idle',
      face: 'intake',
      connections: 5_000,
      reopenAfterMs: 1,
    } as const;
    const skipped: string[] = [];
    const skip = (what: string) => void skipped.push(what);
    expect(withinLimit({ skip }, wish, Infinity)).toEqual(wish);
    expect(skipped).toEqual([]);
    expect(withinLimit({ skip }, wish, 1_024).connections).toBe(424);
    expect(skipped).toEqual(['floods: 424 of 5000 idle, since ulimit -n is 1024']);
    expect(() => withinLimit({ skip }, wish, 256)).toThrow('ulimit -n is 256');
  });
});

describe('figures', () => {
  test('the median and the spread of the rounds of one subject', () => {
    const runs = [3, 1, 2, 10].map((acksPerS) => run('bus', 'tallyhook', { acksPerS }));
    const others = [run('bus', 'baseline', { acksPerS: 99 }), run('intake', 'tallyhook', { acksPerS: 99 })];
    const found = spreadOf(
      [...runs, ...others],
      { case: 'bus', subject: 'tallyhook' },
      (each) => each.acksPerS,
    );
    expect(found).toEqual({ median: 2.5, min: 1, max: 10 });
    expect(spreadOf(runs, { case: 'bus' }, (each) => each.drainS)).toBeUndefined();
  });

  test('confirmed are the events of the window alone, by the time to the last one’s receipt', () => {
    const report = { fromUs: 1_000_000, toUs: 2_000_000, firstNumber: 1, endNumber: 4 };
    const sent = Float64Array.of(900_000, 1_100_000, 1_200_000, 1_900_000);
    const received = Float64Array.of(950_000, 1_200_000, 1_400_000, 3_000_000);
    const { confirmedPerS, receipt, drainS } = arrivals(report, sent, received);
    expect(confirmedPerS).toBeCloseTo(3 / 2, 6);
    expect(drainS).toBeCloseTo(1, 6);
    expect(receipt.count).toBe(3);
    expect(receipt.maxMs / 1_100).toBeCloseTo(1, 2);
  });

  test('memory is compared by the growth of the backlog and not by time', () => {
    const backlog = Array.from({ length: 101 }, (_, second) => [second, second * 10] as const);
    const rss = backlog.map(
      ([second, taken]) => [second, taken < 100 ? 50 : taken > 900 ? 120 : 100] as const,
    );
    expect(flatness(rss, backlog, 1_000)).toEqual({ rssSecondTenthMiB: 100, rssLastTenthMiB: 120 });
    expect(flatness([], [], 1_000)).toEqual({});
  });

  test('CPU ticks are counted behind a name with blanks and parentheses', () => {
    const fields = ['S', '7', ...Array.from({ length: 9 }, () => '0'), '10', '20', '30', '40', '0'];
    const stat = parseStat(42, `42 (a ) b) ${fields.join(' ')}`);
    expect(stat).toEqual({ pid: 42, parent: 7, cpuTicks: 100 });
  });

  test('pgbench’s report is read, and one with failed transactions is refused', () => {
    const text = `number of transactions actually processed: 5000
number of failed transactions: 0 (0.000%)
latency average = 6.400 ms
tps = 4999.5 (without initial connection time)`;
    expect(parsePgbench(text)).toEqual({ transactions: 5_000, meanMs: 6.4, tps: 4_999.5 });
    expect(() => parsePgbench(text.replace('s: 0 (', 's: 3 ('))).toThrow('failed transactions');
    expect(() => parsePgbench('')).toThrow('reports something else');
  });
});

describe('the document', () => {
  test('what stands between the markers is replaced, and nothing else', () => {
    const text = 'before\n<!-- bench:a -->\nold\n<!-- /bench:a -->\nafter';
    expect(fillIn(text, 'a', 'new')).toBe(text.replace('old', 'new'));
    expect(() => fillIn(text, 'b', 'new')).toThrow('<!-- bench:b -->');
  });

  test('columns that nothing was measured for are left out', () => {
    const rows = [
      ['a', '–', '1'],
      ['b', '–', '–'],
    ];
    expect(markdown(['x', 'y', 'z'], rows)).toBe('| x | z |\n| --- | ---: |\n| a | 1 |\n| b | – |');
  });

  test('of several files as one run, it says of each when and by what command it was measured', () => {
    const first = measured('one', '2026-11-21T00:00:00Z', '2026-11-21T00:20:00Z');
    const second = measured('two', '2026-11-22T00:00:00Z', '2026-11-22T00:02:00Z');
    expect(
      aboutTable({ ...first, others: [second] })
        .split('\n')
        .slice(2),
    ).toEqual([
      '| Measured | 2026-11-21 00:00 UTC, 20 minutes, commit abc |',
      '| Command | `one` |',
      '| Measured | 2026-11-22 00:00 UTC, 2 minutes, commit abc |',
      '| Command | `two` |',
    ]);
  });

  test('of several files as one run, the newest counts for a case that it has measured', () => {
    const about = measured('one', '2026-11-21T00:00:00Z', '2026-11-21T00:20:00Z');
    const older = [
      run('bus', 'tallyhook', { acksPerS: 1 }),
      run('rates', 'tallyhook', { acksPerS: 2 }),
      run('tuning', 'baseline', { acksPerS: 3 }, 'rates: 64 connections'),
    ];
    const newer = [run('rates', 'tallyhook', { acksPerS: 4 })];
    const some = { ...about, skipped: [], failures: [] };
    const joined = joinResults([
      { ...some, runs: older },
      { ...some, runs: newer, failures: ['one'] },
    ]);
    expect(joined.runs.map(({ figures }) => figures.acksPerS)).toEqual([1, 4]);
    expect(joined.failures).toEqual(['one']);
  });
});
