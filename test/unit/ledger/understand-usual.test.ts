import { describe, expect, test } from 'vitest';
import { understandAny } from '../../../src/ledger/understanding/understand-any.ts';
import { understandUsual } from '../../../src/ledger/understanding/understand-usual.ts';
import { completed, failed, progress } from '../../support/sender.ts';

const withSpaces = (content: object) => JSON.stringify(content, null, 1).replaceAll('\n', '');

describe('is understood by hand, as by the schemas', () => {
  test.for([
    ['a completed job', JSON.stringify(completed('job_1'))],
    ['a failed job', JSON.stringify(failed('job_1'))],
    ['progress', JSON.stringify(progress('job_1', 45))],
    [
      'unknown fields',
      JSON.stringify({ ...completed('job_1'), trace: 'abc', tries: -2, is_last: true, next: null }),
    ],
    [
      'more unknown fields than are counted',
      JSON.stringify({
        ...progress('job_1', 0),
        ...Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`x${n}`, n])),
      }),
    ],
    ['spaces between values', withSpaces(failed('job_1'))],
    ['letters of any language', JSON.stringify(failed('job_1', { error_message: 'Größe 漢字 😀' }))],
    ['escapes in a value', JSON.stringify(failed('job_1', { error_message: 'line\n"quoted" \\ tab\t' }))],
    [
      'escapes that need not be',
      JSON.stringify(failed('job_1')).replace('"error_message":"', '"error_message":"\\u0041\\/'),
    ],
    ['an error code that is not kept', JSON.stringify(failed('job_1', { error_code: 'x'.repeat(257) }))],
  ] as const)('%s', ([, text]) => {
    const understanding = understandUsual(text);

    expect(understanding).toMatchObject({ outcome: 'event' });
    expect(understanding).toEqual(understandAny(text));
  });
});

describe('is left to the schemas', () => {
  test.for([
    ['an escape in a key', JSON.stringify(completed('job_1')).replace('job_type', 'job\\u005ftype')],
    ['a repeated key', JSON.stringify(completed('job_1')).replace('{', '{"x":1,"x":1,')],
    ['a key that objects would put first', JSON.stringify({ ...completed('job_1') }).replace('}', ',"7":1}')],
    ['a number that is no plain integer', JSON.stringify(completed('job_1')).replace('}', ',"x":1.0}')],
    ['a nested value', JSON.stringify({ ...completed('job_1'), x: {} })],
    [
      'a time in another zone',
      JSON.stringify(completed('job_1', { created_at: '2026-01-31T12:00:00+02:00' })),
    ],
    ['a job id with letters beyond ASCII', JSON.stringify(completed('job_é'))],
    ['an unknown status', JSON.stringify({ job_id: 'job_1', status: 'paused' })],
    ['a missing field', '{"job_id":"job_1","status":"completed"}'],
    ['no JSON', '{"job_id":"job_1","status":"processing","progress_percentage":45'],
  ] as const)('%s', ([, text]) => {
    expect(understandUsual(text)).toBeUndefined();
  });
});
