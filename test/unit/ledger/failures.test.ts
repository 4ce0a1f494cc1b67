import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createFailureLog, failureOf, refusalOf } from '../../../src/ledger/sessions/failures.ts';

const coded = (code: string, fields: object = {}) =>
  Object.assign(new Error('quotes content'), { code, ...fields });

const kindOf = (error: unknown) => failureOf(error).kind;

test('each kind of failure has a name, whoever told of it', () => {
  expect(kindOf(coded('23514'))).toBe('no_partition');
  expect(kindOf(coded('23514', { constraint: 'events_status_check' }))).toBe('refused_value');
  expect(kindOf(coded('23505', { constraint: 'events_pkey' }))).toBe('refused_by_itself');
  expect(kindOf(coded('P0001'))).toBe('added_rule');
  for (const code of ['ECONNREFUSED', 'EAI_AGAIN', 'EPIPE', '08006'])
    expect(kindOf(coded(code))).toBe('unreachable');
  for (const code of ['57P01', '57P02', '57P03']) expect(kindOf(coded(code))).toBe('shutdown');
  for (const message of [
    'Query read timeout',
    'timeout exceeded when trying to connect',
    'Connection terminated unexpectedly',
    'Connection terminated due to connection timeout',
  ]) {
    expect(failureOf(new Error(message))).toMatchObject({ kind: 'no_answer', code: undefined });
  }
  for (const error of [new TypeError('x'), undefined, 'text', coded('F0000')])
    expect(kindOf(error)).toBe('other');
});

test('what Postgres refuses has a kind for the metrics, and what it never said has none', () => {
  const codes = [
    '25006',
    '57P01',
    '57P03',
    '53300',
    '53100',
    '53200',
    '42501',
    '28P01',
    '57014',
    '55P03',
    '40P01',
    '40001',
    '23505',
    '42P01',
  ];
  expect(codes.map((code) => [code, refusalOf(coded(code))])).toEqual([
    ['25006', 'read_only'],
    ['57P01', 'starting_or_stopping'],
    ['57P03', 'starting_or_stopping'],
    ['53300', 'connections'],
    ['53100', 'disk_full'],
    ['53200', 'memory'],
    ['42501', 'permission'],
    ['28P01', 'permission'],
    ['57014', 'timeout'],
    ['55P03', 'timeout'],
    ['40P01', 'deadlock_or_serialization'],
    ['40001', 'deadlock_or_serialization'],
    ['23505', 'other'],
    ['42P01', 'other'],
  ]);
  for (const error of [coded('ECONNREFUSED'), coded('starved'), new Error('Query read timeout'), undefined])
    expect(refusalOf(error)).toBeUndefined();
});

test('a constraint is named, unless a trigger has put a text there', () => {
  const refused = coded('23514', { constraint: 'short_jobs' });
  const named =
    'the database refused it by a constraint or trigger that is not of our migrations (short_jobs)';
  expect(failureOf(refused)).toMatchObject({ constraint: 'short_jobs', because: named });
  const text = coded('P0001', { constraint: 'quotes "content"' });
  expect(JSON.stringify(failureOf(text))).not.toContain('content');
});

test('a kind is logged at once and then once in ten seconds, with how many there were since', () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino(
    { level: 'debug' },
    { write: (line: string) => lines.push(JSON.parse(line) as (typeof lines)[0]) },
  );
  const clock = { ms: 0 };
  const notice = createFailureLog({ now: () => clock.ms, log });

  for (clock.ms = 0; clock.ms <= 20_000; clock.ms += 1_000) notice(coded('53100'));
  notice(coded('25006'));

  expect(lines.map(({ kind, code, failedSince }) => ({ kind, code, failedSince }))).toEqual([
    { kind: 'disk_full', code: '53100', failedSince: undefined },
    { kind: 'disk_full', code: '53100', failedSince: 9 },
    { kind: 'disk_full', code: '53100', failedSince: 9 },
    { kind: 'read_only', code: '25006', failedSince: undefined },
  ]);
  expect(JSON.stringify(lines)).not.toContain('quotes content');
});
