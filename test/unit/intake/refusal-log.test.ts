import { expect, test, vi } from 'vitest';
import { UnavailableError } from '../../../src/base/errors.ts';
import type { BatchWriter } from '../../../src/intake/batch-writer.ts';
import { createRefusalLog } from '../../../src/intake/refusal-log.ts';
import type { DeliveryRecord } from '../../../src/ledger/recording/record.ts';
import type { RefusalCount } from '../../../src/ledger/counts/refusals.ts';
import { refusedRecord } from '../../support/records.ts';
import { createTestLog } from '../../support/test-log.ts';

const WARN = 40;

function createLogs(options: { rowsPerMinute: number; isFull?: boolean; addFails?: number }) {
  const rows: DeliveryRecord[] = [];
  const deadlines: number[] = [];
  const counted: RefusalCount[] = [];
  const clock = { ms: 1_000 };
  let failures = options.addFails ?? 0;
  const writer: BatchWriter = {
    submit: (delivery, deadlineMs) => {
      if (options.isFull) return Promise.reject(new UnavailableError('full', 'the write queue is full'));
      rows.push(delivery);
      deadlines.push(deadlineMs);
      return Promise.resolve({ outcome: 'unauthorized', late: false });
    },
    hasRoom: () => !options.isFull,
    waiting: () => ({ deliveries: 0, bytes: 0 }),
    drained: () => Promise.resolve(),
  };
  const { log, lines } = createTestLog();
  const refusals = createRefusalLog({
    writer,
    addRefusals: (counts) => {
      if (failures-- > 0) return Promise.reject(new Error('connection lost'));
      counted.push(...counts);
      return Promise.resolve();
    },
    rowsPerMinute: options.rowsPerMinute,
    patienceMs: 500,
    now: () => clock.ms,
    log,
  });
  const trace = (times: number, record?: Parameters<typeof refusedRecord>[0]) => {
    for (let sent = 0; sent < times; sent++) refusals.trace(refusedRecord(record));
  };
  return { refusals, rows, deadlines, counted, clock, trace, lines };
}

test('so many refusals a minute and source have a row, and the rest are counted by kind', async () => {
  const { refusals, rows, counted, trace } = createLogs({ rowsPerMinute: 2 });

  trace(5);
  trace(3, { outcome: 'refused' });
  trace(1, { source: 'team-a' });
  trace(4, { source: 'unknown', outcome: 'refused' });
  await refusals.close();

  expect(rows.map(({ source, outcome }) => `${source} ${outcome}`)).toEqual([
    'default unauthorized',
    'default unauthorized',
    'team-a unauthorized',
    'unknown refused',
    'unknown refused',
  ]);
  expect(counted).toEqual([
    { source: 'default', unauthorized: 3, refused: 3 },
    { source: 'unknown', unauthorized: 0, refused: 2 },
  ]);
});

test('each minute has its own rows', async () => {
  const { refusals, rows, counted, clock, trace } = createLogs({ rowsPerMinute: 1 });

  trace(2);
  clock.ms += 59_999;
  trace(1);
  clock.ms += 1;
  trace(2);
  await refusals.close();

  expect(rows).toHaveLength(2);
  expect(counted).toEqual([{ source: 'default', unauthorized: 3, refused: 0 }]);
});

test('with no rows allowed everything is counted', async () => {
  const { refusals, rows, counted, trace } = createLogs({ rowsPerMinute: 0 });

  trace(3);
  await refusals.close();

  expect(rows).toEqual([]);
  expect(counted).toEqual([{ source: 'default', unauthorized: 3, refused: 0 }]);
});

test('a row that cannot be written is counted, so that the attempt leaves a trace all the same', async () => {
  const { refusals, counted, trace } = createLogs({ rowsPerMinute: 10, isFull: true });

  trace(2);
  await refusals.close();

  expect(counted).toEqual([{ source: 'default', unauthorized: 2, refused: 0 }]);
});

test('a row may wait for its write as long as it was told and no longer', async () => {
  const { refusals, deadlines, trace } = createLogs({ rowsPerMinute: 10 });

  trace(1);
  await refusals.close();

  expect(deadlines).toEqual([1_500]);
});

test('counts that could not be written are kept for the next time', async () => {
  vi.useFakeTimers();
  try {
    const { refusals, counted, trace, lines } = createLogs({ rowsPerMinute: 0, addFails: 1 });

    trace(2);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(counted).toEqual([]);
    trace(1, { outcome: 'refused' });
    await vi.advanceTimersByTimeAsync(2_000);

    expect(counted).toEqual([{ source: 'default', unauthorized: 2, refused: 1 }]);
    expect(lines.filter(({ level }) => level === WARN)).toHaveLength(1);
    await refusals.close();
    expect(counted).toHaveLength(1);
  } finally {
    vi.useRealTimers();
  }
});

test('what has no row is told in a line a second and source, with counts and the busiest addresses', () => {
  vi.useFakeTimers();
  try {
    const { refusals, trace, lines } = createLogs({ rowsPerMinute: 1 });
    const traced = () => refusals.trace(refusedRecord({ source: 'team-a' }));
    expect([traced(), traced()]).toEqual(['row', 'counted']);

    trace(1);
    for (let n = 1; n <= 7; n++) trace(n, { remoteAddress: `192.0.2.${n}` });
    trace(2, { outcome: 'refused', remoteAddress: '192.0.2.7' });
    expect(lines).toEqual([]);
    vi.advanceTimersByTime(1_000);

    const msg = 'more deliveries refused';
    const [ofTeam, ofDefault, ...others] = lines;
    expect(others).toEqual([]);
    expect(ofTeam).toMatchObject({
      level: 30,
      msg,
      source: 'team-a',
      outcomes: { unauthorized: 1 },
      addresses: [],
    });
    expect(ofDefault).toMatchObject({
      level: 30,
      msg,
      source: 'default',
      outcomes: { unauthorized: 28, refused: 2 },
      statuses: { 401: 28, 413: 2 },
      addresses: [9, 6, 5, 4, 3].map((count) => ({ address: `192.0.2.${Math.min(count, 7)}`, count })),
    });

    vi.advanceTimersByTime(10_000); // nothing new, nothing told
    expect(lines).toHaveLength(2);
    void refusals.close();
  } finally {
    vi.useRealTimers();
  }
});

test('what was not told yet is told at the end', async () => {
  const { refusals, trace, lines } = createLogs({ rowsPerMinute: 0 });

  trace(3, { source: 'unknown' });
  await refusals.close();

  expect(lines).toMatchObject([{ source: 'unknown', outcomes: { unauthorized: 3 } }]);
});
