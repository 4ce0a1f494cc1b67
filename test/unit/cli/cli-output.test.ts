import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { secondsOf, timeOf } from '../../../src/operators/kernel/list/filters.command.ts';
import { ago, bytes, clean, counted, duration, time } from '../../../src/terminal/readable.ts';
import { type Column, renderTable } from '../../../src/terminal/table.ts';
import { shorten, widthOf, wrap } from '../../../src/terminal/text-width.ts';
import { UsageError } from '../../../src/base/errors.ts';

type Row = { readonly id: string; readonly n: number; readonly reason: string | null };

const ROWS: Row[] = [
  { id: 'default:job_7f3a:completed', n: 5, reason: null },
  { id: 'default:job_1:failed', n: 12_345, reason: 'progress_percentage must be a whole number' },
];
const COLUMNS: readonly Column<Row>[] = [
  { head: 'event', text: (row) => row.id, shorten: 'last' },
  { head: 'times', text: (row) => row.n, right: true, drop: true },
  { head: 'reason', text: (row) => row.reason, wrapTo: 15, below: 'first' },
];

const render = (rows: readonly Row[], width: number, head = true) =>
  stripVTControlCharacters(renderTable(rows, COLUMNS, { width, head })).split('\n');

describe('a table', () => {
  test('is as wide as what it holds where there is room', () => {
    expect(render(ROWS, 200)).toEqual([
      'event                       times  reason',
      'default:job_7f3a:completed      5',
      'default:job_1:failed        12345  progress_percentage must be a whole number',
    ]);
  });

  test('gives way step by step: text continues, then stands below, columns are left out, and names are shortened last', () => {
    expect(render(ROWS, 55)).toEqual([
      'event                       times  reason',
      'default:job_7f3a:completed      5',
      'default:job_1:failed        12345  progress_percentage',
      '                                   must be a whole',
      '                                   number',
    ]);
    expect(render(ROWS, 40)).toEqual([
      'event                       times',
      'default:job_7f3a:completed      5',
      'default:job_1:failed        12345',
      '    reason: progress_percentage must be',
      '    a whole number',
    ]);
    expect(render(ROWS, 30).slice(0, 3)).toEqual([
      'event',
      'default:job_7f3a:completed',
      'default:job_1:failed',
    ]);
    expect(render(ROWS, 21)).toEqual([
      'event',
      'default:jo…:completed',
      'default:job_1:failed',
      '    reason: progress_',
      '    percentage must',
      '    be a whole number',
    ]);
  });

  test('is no wider than it may be, whatever it holds', () => {
    const texts = [
      'x'.repeat(300),
      '映画'.repeat(60),
      '🎬🎞️👩‍🚀 '.repeat(30),
      'e\u0301'.repeat(200),
      'क्षि'.repeat(90),
    ];
    for (const width of [30, 80, 120]) {
      const rows = texts.map((text) => ({ id: text, n: 1, reason: text }));
      expect(Math.max(...render(rows, width).map(widthOf))).toBeLessThanOrEqual(width);
    }
  });

  test('leaves out a column that is empty, and its head where it goes on', () => {
    expect(render(ROWS.slice(0, 1), 80)).toEqual([
      'event                       times',
      'default:job_7f3a:completed      5',
    ]);
    expect(render(ROWS.slice(0, 1), 80, false)).toEqual(['default:job_7f3a:completed  5']);
  });

  test('shows no characters that control the terminal', () => {
    const [, line] = render([{ id: 'job\u001b[2J\u0007\n\u202e', n: 1, reason: null }], 80);
    expect(line).toBe('job�[2J���      1');
  });
});

describe('the width of text', () => {
  test.for([
    ['', 0],
    ['abc', 3],
    ['映画', 4],
    ['ｆｕｌｌ', 8],
    ['한국어', 6],
    ['🎬', 2],
    ['🇩🇪', 2],
    ['❤️', 2],
    ['👍🏽', 2],
    ['e\u0301', 1],
    ['…–▶é', 4],
  ] as const)('%j takes %d columns', ([text, columns]) => {
    expect(widthOf(text)).toBe(columns);
  });

  test('wide characters count as two where text is continued or shortened', () => {
    expect(wrap('映画 映画 abc', 9)).toEqual(['映画 映画', 'abc']);
    expect(wrap('映画映画', 5)).toEqual(['映画', '映画']);
    expect(shorten('映画映画映画', 7)).toBe('映…画');
    expect(shorten('default:job_7f3a:completed', 21)).toBe('default:jo…:completed');
    expect(shorten('01a1ff88-c29b-7e93-a060-067e8625acca', 10)).toBe('01a1f…acca');
    expect(shorten('job_1', 5)).toBe('job_1');
  });

  test('a UUID is whole or short: nobody sees that two characters are missing', () => {
    const uuid = '01a1ff88-c29b-7e93-a060-067e8625acca';
    expect(shorten(uuid, 36)).toBe(uuid);
    expect(shorten(uuid, 35)).toBe('01a1f…acca');
  });

  test('a number stays with the unit or word behind it, as long as both fit into a line', () => {
    expect(wrap('processing 45 %', 13)).toEqual(['processing', '45 %']);
    expect(wrap('2 unauthorized, 18 quarantined', 20)).toEqual(['2 unauthorized,', '18 quarantined']);
    expect(wrap('12,345 unauthorized', 12)).toEqual(['12,345', 'unauthorized']);
  });
});

describe('values as a person reads them', () => {
  test.for([
    ['2026-11-21T18:42:07.123456Z', '2026-11-21 18:42:07.123'],
    ['2026-11-21T18:42:07.1Z', '2026-11-21 18:42:07.100'],
    ['2026-11-21T18:42:07Z', '2026-11-21 18:42:07'],
    [null, '–'],
    ['soon\u001b', 'soon�'],
  ])('the time %j is %j', ([given, shown]) => {
    expect(time(given)).toBe(shown);
  });

  test.for([
    [0, '0 ms'],
    [0.4, '<1 ms'],
    [999.9, '999 ms'],
    [4_250, '4.2 s'],
    [59_999, '59.9 s'],
    [61_000, '1 min 1 s'],
    [3_600_000, '1 h 0 min'],
    [50 * 3_600_000, '2 d 2 h'],
    [null, '–'],
  ] as const)('%j ms are %j', ([ms, shown]) => {
    expect(duration(ms)).toBe(shown);
  });

  test('counts have their noun, and sizes their unit', () => {
    expect(counted(0, 'replay')).toBe('0 replays');
    expect([counted(1, 'delivery'), counted(12_345, 'delivery'), counted(0, 'event')]).toEqual([
      '1 delivery',
      '12,345 deliveries',
      '0 events',
    ]);
    expect([bytes(0), bytes(1_023), bytes(1_024), bytes(5 * 1024 ** 3)]).toEqual([
      '0 B',
      '1023 B',
      '1.0 KiB',
      '5.0 GiB',
    ]);
    expect(ago(null)).toBe('never');
    expect(ago('2026-01-01T00:00:00Z', Date.parse('2026-01-01T00:01:30Z'))).toBe('1 min 30 s ago');
    expect(clean('a\tb')).toBe('a�b');
  });
});

describe('times as a person writes them', () => {
  const nowMs = Date.parse('2026-01-31T12:00:00.000Z');

  test.for([
    ['15m', '2026-01-31T11:45:00.000Z'],
    ['24h', '2026-01-30T12:00:00.000Z'],
    ['7d', '2026-01-24T12:00:00.000Z'],
    ['2026-01-31', '2026-01-31T00:00:00Z'],
    ['2026-01-31T12:00:00.123456+01:00', '2026-01-31T12:00:00.123456+01:00'],
  ])('%j is %j', ([given = '', meant]) => {
    expect(timeOf('--from', given, nowMs)).toBe(meant);
  });

  test.for(['', 'yesterday', '15', '2026-13-01', '2026-01-31T12:00:00', '1e9d', '-1h'])(
    '%j is no time',
    (text) => {
      expect(() => timeOf('--from', text, nowMs)).toThrow(UsageError);
    },
  );

  test('a length is a number with a unit, or of seconds', () => {
    expect([secondsOf('--step', '90'), secondsOf('--step', '5m'), secondsOf('--step', '1d')]).toEqual([
      90, 300, 86_400,
    ]);
    expect(() => secondsOf('--step', '1w')).toThrow(UsageError);
  });
});
