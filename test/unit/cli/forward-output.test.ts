import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { type Handed, lineOf, sumOf } from '../../../src/tools/forward/output.ts';
import { withoutColours as paint } from '../../../src/terminal/io.ts';

const DELIVERY = {
  received_at: '2026-01-15T10:30:00.123456Z',
  source: 'default',
  outcome: 'accepted',
  job_id: 'job_7f3a',
  status: 'processing',
  progress_percentage: 45,
};
const OK: Handed = {
  result: 'ok',
  status: 200,
  durationMs: 12,
  text: `{"ok":true,"note":"${'long '.repeat(40)}"}\n`,
};

const line = (handed: Handed, { columns = 120, waiting = 0, delivery = DELIVERY } = {}) =>
  stripVTControlCharacters(lineOf(delivery, handed, { waiting, columns, paint }));

test('a line has the delivery, the answer of the handler and its beginning, cut to the terminal', () => {
  expect(line(OK)).toBe(
    '10:30:00  accepted      default  job_7f3a  processing 45 %  → 200 in 12 ms  {"ok":true,"note":"long long long long long…',
  );
  expect(line(OK)).toHaveLength(120);
});

test('a narrow terminal gets the first twenty characters of the answer all the same', () => {
  expect(line(OK, { columns: 80 })).toMatch(/ms {2}\{"ok":true,"note":"…$/);
});

test('how many wait is said', () => {
  const answer: Handed = { result: 'failed', status: 500, durationMs: 1_500, text: '' };
  expect(line(answer, { waiting: 1_234 })).toMatch(/→ 500 in 1.5 s {2}\(1,234 more waiting\)$/);
});

test('a redirect is said not to be followed', () => {
  expect(line({ result: 'failed', status: 302, durationMs: 2, text: '' })).toMatch(
    /→ 302 in 2 ms, redirect not followed$/,
  );
});

test('the source is said whose secret signed it, if it is not its own', () => {
  const answer: Handed = { result: 'ok', status: 200, durationMs: 2, text: '', signedAs: 'default' };
  expect(line(answer)).toMatch(/→ 200 in 2 ms {2}\(signed with the secret of "default"\)$/);
});

test('at the end it is counted, also what was not finished', () => {
  const tally = { ok: 2, failed: 1, no_answer: 0, not_forwarded: 1, in_progress: 0, waiting: 0 };
  expect(sumOf(tally)).toBe('3 deliveries forwarded, 1 of them failed; 1 not forwarded');
  expect(sumOf({ ...tally, in_progress: 1, waiting: 4 })).toMatch(
    /; stopped with 1 in progress and 4 waiting$/,
  );
});

test('what others wrote does not control the terminal, and stays on the line', () => {
  const text = 'one\ntwo\u001b[31m';
  const shown = lineOf(
    { ...DELIVERY, job_id: 'job\u0007' },
    { result: 'ok', status: 200, durationMs: 1, text },
    { waiting: 0, columns: 120, paint },
  );
  for (const control of ['\u0007', '\n', '\u001b[31m']) expect(shown).not.toContain(control);
});

test.for([
  [
    { result: 'no_answer', reason: 'nothing listens at 127.0.0.1:3000' },
    '→ nothing listens at 127.0.0.1:3000',
  ],
  [{ result: 'not_forwarded', reason: 'its body is not kept' }, 'not forwarded: its body is not kept'],
] as const)('without an answer the reason is said: %j', ([handed, words]) => {
  expect(line(handed)).toMatch(new RegExp(`${words}$`));
});
