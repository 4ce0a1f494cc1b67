import { describe, expect, test } from 'vitest';
import { fillIn } from '../../bench/document.ts';
import { flatness } from '../../bench/long-cases.ts';
import { arrivals } from '../../bench/measure.ts';
import { parsePgbench } from '../../bench/pgbench.ts';
import { bestPool } from '../../bench/runs.ts';
import { type Run, spreadOf } from '../../bench/results.ts';
import { markdown, targetsTable } from '../../bench/tables.ts';
import { targetsOf } from '../../bench/targets.ts';
import { parseStat } from '../../bench/usage.ts';
import { RATED_PER_S } from '../../bench/scale.ts';

function run(name: Run['case'], subject: Run['subject'], figures: Run['figures'], variant = ''): Run {
  return { case: name, subject, variant, round: 1, startedAt: '2026-11-21T00:00:00Z', figures };
}

const isMet = (runs: readonly Run[]) => targetsOf(runs).map((target) => target.isMet);

describe('targets', () => {
  test('a target that was not measured is unknown and never met', () => {
    expect(isMet([])).toEqual(Array.from({ length: 7 }, () => undefined));
    expect(isMet([run('bus', 'tallyhook', { confirmedPerS: 5_000 })])[0]).toBeUndefined();
  });

  test('each is met at its limit and missed below it', () => {
    const baseline = run('bus', 'baseline', { confirmedPerS: 1_000 });
    const verify = run('bus', 'verify route', { acksPerS: 10_000 });
    const pgbench = run('intake', 'pgbench', { acksPerS: 10_000 });
    const answer = { count: 1, p50Ms: 1, p90Ms: 1, p999Ms: 1, maxMs: 1, meanMs: 1 };
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
        { acksPerS: 1, answer: { ...answer, p99Ms: 49 / factor } },
        '50 % of the peak',
      ),
      run('outage', 'tallyhook', { rssSecondTenthMiB: 100, rssLastTenthMiB: 109 / factor }),
    ];
    expect(isMet(at(1))).toEqual(Array.from({ length: 7 }, () => true));
    expect(isMet(at(0.95))).toEqual(Array.from({ length: 7 }, () => false));
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

  test('a missed target is shown as missed', () => {
    const runs = [
      run('bus', 'tallyhook', { confirmedPerS: 1 }),
      run('bus', 'baseline', { confirmedPerS: 1 }),
    ];
    const results = { runs } as unknown as Parameters<typeof targetsTable>[0];
    expect(targetsTable(results)).toContain('| ≥ 5 × | 1.00 × | **missed** | 1/s / 1/s |');
  });
});
