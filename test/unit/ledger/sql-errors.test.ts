import { expect, test } from 'vitest';
import { faultOf, isRolledBack } from '../../../src/ledger/sessions/sql-errors.ts';

const refused = (code: string, constraint?: string) =>
  Object.assign(new Error('refused'), { code, constraint });

test.for([
  ['22021', undefined, 'delivery'], // a NUL
  ['22P05', undefined, 'delivery'], // a character that the database's encoding lacks
  ['22008', undefined, 'delivery'],
  ['54000', 'deliveries_20261125_status_received_at_idx', 'delivery'],
  ['23514', 'events_check', 'delivery'],
  ['23514', 'events_status_check', 'delivery'],
  ['23505', 'events_pkey', 'ledger'],
  ['23505', 'deliveries_20261125_pkey', 'ledger'],
  ['23505', 'outbox_batches_pkey', 'ledger'],
  ['23514', 'deliveries_outcome_check', 'ledger'],
  ['23514', undefined, 'ledger'], // no partition
  ['2200H', undefined, 'ledger'], // a sequence at its end
  ['54000', undefined, 'ledger'], // no transaction id is left
  ['54001', undefined, 'ledger'],
  ['23505', 'events_once_a_day', 'added'],
  ['23514', 'events_check1', 'added'],
  ['23502', undefined, 'added'],
  ['23503', 'events_job_fkey', 'added'],
  ['22003', undefined, 'added'],
  ['22012', undefined, 'added'],
  ['P0001', undefined, 'added'],
] as const)('a row that is refused with %s by %s is the fault of: %s', ([code, constraint, fault]) => {
  const error = refused(code, constraint);

  expect(faultOf(error)).toBe(fault);
  expect(isRolledBack(error)).toBe(true);
});

test('what is no refusal of a row is nobody’s fault', () => {
  for (const code of ['40P01', '53100', '57014', '57P01', '25006', '42P01', 'ECONNRESET'])
    expect(faultOf(refused(code))).toBeUndefined();
  expect(faultOf(new Error('Query read timeout'))).toBeUndefined();
  expect(isRolledBack(refused('57P01'))).toBe(false);
});
