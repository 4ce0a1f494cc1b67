import { describe, expect, test } from 'vitest';
import { fillIn } from '../../bench/document.ts';
import { servedOf, withinLimit } from '../../bench/floods.ts';
import { flatness } from '../../bench/long-cases.ts';
import { arrivals } from '../../bench/measure.ts';
import { parsePgbench } from '../../bench/pgbench.ts';
import { bestPool } from '../../bench/runs.ts';
import { type Results, type Run, spreadOf } from '../../bench/results.ts';
import { aboutTable, floodsTable, markdown, targetsTable } from '../../bench/tables.ts';
import { targetsOf } from '../../bench/targets.ts';
import { parseStat } from '../../bench/usage.ts';
import { RATED_PER_S } from '../../bench/scale.ts';

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
const isMet = (runs: readonly Run[]) => targetsOf(runs).map((target) => target.isMet);

describe('targets', () => {
  test('a target that was not measured is unknown and never met', () => {
    expect(isMet([])).toEqual(Array.from({ length: 10 }, () => undefined));
    expect(isMet([run('bus', 'tallyhook', { confirmedPerS: 5_000 })])[0]).toBeUndefined();
  });

  test('each is met at its limit and missed below it', () => {
    const baseline = run('bus', 'baseline', { confirmedPerS: 1_000 });
    const verify = run('bus', 'verify route', { acksPerS: 10_000 });
    const pgbench = run('intake', 'pgbench', { acksPerS: 10_000 });
    const at = (factor: number) => [
      baseline,
      verify,
      pgbench,
      run('bus', 'tallyhook', { confirmedPerS: 5_000 * factor, acksPerS: 7_000 * factor }),
      run('intake', 'tallyhook, broker down', { acksPerS: 8_000 * factor }),
      run('growth', 'tallyhook', { acksPerS: 1_000 }, '0 events'),
      run('growth', 'tallyhook', { acksPerS: 900 * factor }, '10,000,000 events'),
      run('backlog', 'tallyhook', { drainedPerS: 2 * RATED_PER_S * factor }),
      run(
        'rates',
        'tallyhook',
        { acksPerS: 1, answer: { ...latency, p99Ms: 49 / factor } },
        '50 % of the peak',
      ),
      run('outage', 'tallyhook', { rssSecondTenthMiB: 100, rssLastTenthMiB: 109 / factor }),
      besideFlood({ worstMs: 1_499 / factor, rssGrowthMiB: 237 / factor }),
    ];
    expect(isMet(at(1))).toEqual(Array.from({ length: 10 }, () => true));
    expect(isMet(at(0.95))).toEqual(Array.from({ length: 10 }, () => false));
  });
});

describe('floods', () => {
  const good = besideFlood({ worstMs: 100, rssGrowthMiB: 10 }, '200 that pipeline');

  test('the worst of them decides, each target by itself', () => {
    const slow = besideFlood({ worstMs: 1_600, rssGrowthMiB: 10 }, '1,500 that stall');
    const large = besideFlood({ worstMs: 100, rssGrowthMiB: 300 }, '5,000 idle');
    expect(ofFloods([good, slow, large]).map(({ found, isMet: met, from }) => [found, met, from])).toEqual([
      ['1600 ms', false, '1,500 that stall; the worst of 3'],
      ['1600 ms', false, '1,500 that stall; the worst of 3'],
      ['300 MiB', false, '5,000 idle; the worst of 3'],
    ]);
  });

  test('quick answers to most deliveries do not make up for one without a 2xx', () => {
    const targets = ofFloods([good, besideFlood({ worstMs: 100, rssGrowthMiB: 10, bad: 1 })]);
    expect(targets.map(({ found, isMet: met }) => [found, met])).toEqual([
      ['not all answered', false],
      ['100 ms', true],
      ['10 MiB', true],
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

  test('the baseline gets the pool with which it did best, and the usual one where none was tried', () => {
    const tried = [
      [10, 300],
      [20, 500],
      [40, 400],
    ].map(([size, confirmedPerS]) =>
      run('tuning', 'baseline', { confirmedPerS: confirmedPerS ?? 0 }, `pool of ${size}`),
    );
    expect([bestPool(tried), bestPool(tried.slice(2)), bestPool([])]).toEqual([20, 40, 20]);
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

  test('a missed target is shown as missed', () => {
    const runs = [
      run('bus', 'tallyhook', { confirmedPerS: 1 }),
      run('bus', 'baseline', { confirmedPerS: 1 }),
    ];
    const results = { runs } as unknown as Parameters<typeof targetsTable>[0];
    expect(targetsTable(results)).toContain('| ≥ 5 × | 1.00 × | **missed** | 1/s / 1/s |');
  });
});
