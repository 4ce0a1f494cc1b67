import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { UnavailableError } from '../../../src/base/errors.ts';
import { createDeliveryObserver, createUnavailableLines } from '../../../src/intake/observer.ts';
import type { RefusalTrace, RefusedDelivery } from '../../../src/intake/refusal-log.ts';
import { createMetrics } from '../../../src/base/metrics.ts';
import { refusedRecord } from '../../support/records.ts';
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

const SIGNED = {
  headers: { 'x-service-signature': `sha256=${'0'.repeat(64)}` },
  body: Buffer.from('{}'),
  hasLeft: false,
};

const ignore = () => {};

/** `trace`: what becomes of each refusal. */
function createObserver(trace: RefusalTrace) {
  const traced: RefusedDelivery[] = [];
  const tried: string[] = [];
  const { log, lines } = createTestLog();
  const observer = createDeliveryObserver({
    metrics: createMetrics({ version: 'test', sources: () => [] }),
    counts: {
      rollups: { answered: ignore },
      refusedAddresses: { notice: ignore },
    } as unknown as Parameters<typeof createDeliveryObserver>[0]['counts'],
    refusals: {
      trace: (delivery) => {
        traced.push(delivery);
        return trace;
      },
      close: () => Promise.resolve(),
    },
    trial: {
      find: async (source) => {
        tried.push(source);
        await nextTurn();
        return { reason: 'found', signedBy: 'team-b' };
      },
    },
    log,
  });
  const refuse = (source: string, signed: Parameters<typeof observer.answered>[2] = SIGNED) => {
    const delivery = refusedRecord({ source });
    const body = { error: 'unauthorized', message: 'x' };
    const answer = { delivery, outcome: 'unauthorized', httpStatus: 401, body, isVerified: false } as const;
    observer.answered(answer, 1, signed);
  };
  return { observer, refuse, traced, tried, lines };
}

describe('why a signature failed', () => {
  test('is not looked for before the answer has left: not in the turn in which it is written', async () => {
    const { observer, refuse, traced, tried } = createObserver('row');

    refuse('team-a');
    refuse('team-a', { headers: {}, body: undefined, hasLeft: false });
    await new Promise<void>((resolve) => process.nextTick(resolve));
    for (let n = 0; n < 20; n++) await Promise.resolve();
    expect([traced, tried]).toEqual([[], []]);

    await observer.close();
    expect(traced.map(({ reason, signedBy }) => [reason, signedBy])).toEqual([
      ['no X-Service-Signature header', null],
      ['found', 'team-b'],
    ]);
  });

  test('is in the line of the log, without the other source', async () => {
    const { observer, refuse, lines } = createObserver('row');

    refuse('team-a');
    await observer.close();

    expect(lines).toMatchObject([{ source: 'team-a', outcome: 'unauthorized', reason: 'found' }]);
    expect(JSON.stringify(lines)).not.toContain('team-b');
  });

  test('is tried whether or not the source has rows left, which would tell strangers that it exists', async () => {
    const { observer, refuse, tried, lines } = createObserver('counted');

    refuse('team-a');
    refuse('unknown');
    await observer.close();

    expect(tried).toEqual(['team-a', 'unknown']);
    expect(lines).toEqual([]);
  });
});
