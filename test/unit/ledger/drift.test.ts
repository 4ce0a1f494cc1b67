import { describe, expect, test } from 'vitest';
import {
  createDriftLog,
  DRIFT_NAMES_PER_SOURCE,
  type DriftCount,
} from '../../../src/ledger/understanding/drift.ts';
import { understood } from '../../support/records.ts';
import { completed, failed, progress } from '../../support/sender.ts';
import { createTestLog } from '../../support/test-log.ts';

const driftOf = (body: object | string) =>
  understood(typeof body === 'string' ? body : JSON.stringify(body)).drift;

function createLog() {
  const written: DriftCount[] = [];
  const addDrift = (rows: readonly DriftCount[]) => {
    written.push(...rows);
    return Promise.resolve();
  };
  return { drift: createDriftLog({ addDrift, log: createTestLog().log }), written };
}
const field = (name: string) => ({ kind: 'field', status: 'completed', name, valueType: 'string' }) as const;

describe('what a body has that the schemas do not know', () => {
  test.for([completed('job_1'), failed('job_1'), progress('job_1', 5)])(
    'is nothing for $status as specified',
    (body) => {
      expect(understood(JSON.stringify(body))).not.toHaveProperty('drift');
    },
  );

  test('is each unknown field with its type and never its value', () => {
    const body = {
      ...completed('job_1'),
      text: 'planted',
      whole: 1,
      list: ['planted'],
      object: { planted: 1 },
      nothing: null,
      flag: true,
    };

    expect(driftOf(body)).toEqual(
      [
        ['text', 'string'],
        ['whole', 'number'],
        ['list', 'array'],
        ['object', 'object'],
        ['nothing', 'null'],
        ['flag', 'boolean'],
      ].map(([name, valueType]) => ({ kind: 'field', status: 'completed', name, valueType })),
    );
  });

  test('is a number also where a double could not hold it', () => {
    const text = JSON.stringify({ ...progress('job_1', 5), big: 0 }).replace(
      '"big":0',
      '"big":12345678901234567890',
    );

    expect(driftOf(text)).toEqual([
      { kind: 'field', status: 'processing', name: 'big', valueType: 'number' },
    ]);
  });

  test('is a field of another kind of event, too', () => {
    expect(driftOf({ ...progress('job_1', 5), error_code: 'E1' })).toMatchObject([{ name: 'error_code' }]);
  });

  test.for(['__proto__', 'constructor', 'toString', ''])('is the field "%s"', (name) => {
    const text = JSON.stringify(progress('job_1', 5)).replace('{', `{${JSON.stringify(name)}:1,`);

    expect(driftOf(text)).toMatchObject([{ kind: 'field', name, valueType: 'number' }]);
  });

  test('is bounded for a body of nothing else', () => {
    const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`field_${index}`, index]));

    expect(driftOf({ ...progress('job_1', 5), ...many })).toHaveLength(20);
  });

  test('is nothing where a known field breaks the schema: the reason tells', () => {
    expect(driftOf({ ...progress('job_1', 101), extra: 1 })).toBeUndefined();
  });
});

describe('the drift log', () => {
  test('counts what has one name, and keeps the newest delivery', async () => {
    const { drift, written } = createLog();

    drift.notice('default', 'delivery 1', [field('a'), field('b')]);
    drift.notice('default', 'delivery 2', [{ ...field('a'), valueType: 'null' }]);
    await drift.close();

    expect(written).toEqual([
      { ...field('a'), source: 'default', valueType: 'null', deliveryId: 'delivery 2', count: 2 },
      { ...field('b'), source: 'default', deliveryId: 'delivery 1', count: 1 },
    ]);
  });

  test('keeps so many fields a source, whatever is sent, and has room for a status all the same', async () => {
    const { drift, written } = createLog();

    for (let n = 0; n < 1_000; n++) drift.notice('default', 'delivery', [field(`field_${n}`)]);
    drift.notice('team-a', 'delivery', [field('a')]);
    drift.notice('default', 'delivery', [
      { kind: 'status', status: 'exploded', name: 'exploded', valueType: 'string' },
    ]);
    await drift.close();

    expect(written).toHaveLength(DRIFT_NAMES_PER_SOURCE + 2);
    expect(written.filter(({ kind }) => kind === 'status')).toHaveLength(1);
  });

  test('cuts long names and replaces what cannot be shown', async () => {
    const { drift, written } = createLog();

    drift.notice('default', 'delivery', [
      field('x'.repeat(5_000)),
      field('a\0b\u001b[31m\ud800'),
      field('été 1'),
    ]);
    await drift.close();

    expect(written.map(({ name }) => name)).toEqual(['x'.repeat(128), 'a\ufffdb\ufffd[31m\ufffd', 'été 1']);
  });
});
