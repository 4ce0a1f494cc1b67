import { expect, test, vi } from 'vitest';
import { UnavailableError } from '../../../src/errors.ts';
import { createUnavailableLines } from '../../../src/intake/observer.ts';
import { createTestLog } from '../../support/test-log.ts';

const full = new UnavailableError('full', 'the write queue is full');
const late = new UnavailableError('late', 'no write was free in time');

const failed = (code: string) =>
  new UnavailableError('ledger', 'the ledger did not confirm the write', {
    cause: Object.assign(new Error(), { code }),
  });

function createLines() {
  const { log, lines } = createTestLog();
  const { write, close } = createUnavailableLines({ log });
  const flood = (times: number, cause: unknown) => {
    for (let n = 0; n < times; n++) write({ delivery: `id ${n}`, status: 503 }, cause);
  };
  return { flood, close, lines };
}

test('of each cause the first ones of a second have a line, and the rest are counted by cause at its end', () => {
  vi.useFakeTimers();
  try {
    const { flood, close, lines } = createLines();
    flood(10_000, full);
    flood(7, late);
    flood(2, new Error('something else'));

    expect(lines).toHaveLength(5 + 5 + 2);
    expect(lines[0]).toMatchObject({ level: 40, msg: 'delivery', delivery: 'id 0', err: { code: 'full' } });
    vi.advanceTimersByTime(1_000);
    expect(lines.slice(12)).toMatchObject([
      { level: 40, msg: 'more deliveries unavailable', causes: { full: 9_995, late: 2 } },
    ]);
    expect(lines[12]?.['causes']).not.toHaveProperty('Error');

    vi.advanceTimersByTime(5_000);
    expect(lines).toHaveLength(13);
    flood(6, full); // a second of its own
    expect(lines).toHaveLength(18);
    close();
    expect(lines.slice(18)).toMatchObject([{ causes: { full: 1 } }]);
  } finally {
    vi.useRealTimers();
  }
});

test('what the ledger refused is counted by the kind of its failure', () => {
  const { flood, close, lines } = createLines();
  flood(6, failed('53100'));
  flood(7, failed('55P03'));
  close();
  expect(lines.at(-1)).toMatchObject({ causes: { 'ledger: disk_full': 1, 'ledger: lock_timeout': 2 } });
});
