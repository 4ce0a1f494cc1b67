import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../only-in-all.ts';
import { understandAny } from '../../../src/ledger/understanding/understand-any.ts';
import { understandUsual } from '../../../src/ledger/understanding/understand-usual.ts';
import { completed, failed, progress } from '../../support/sender.ts';

/** Values where reading by hand could go another way than JSON.parse and zod, and some plain ones. */
const VALUES = [
  '0',
  '-0',
  '00',
  '-',
  '-1',
  '01',
  '7',
  '100',
  '101',
  '123456789012345',
  '1234567890123456',
  '9007199254740993',
  '1.0',
  '1.5',
  '1e2',
  '1E2',
  '1e400',
  '+1',
  '0x1',
  'NaN',
  '1 2',
  'true',
  'false',
  'null',
  'nul',
  'truex',
  'True',
  '{}',
  '[]',
  '[1]',
  '{"a":1}',
  '',
  "'a'",
  '"',
  '"\\"',
  '"\\\\"',
  '"a\\"b"',
  '"a\\nb"',
  '"\\u00e9"',
  '"\\ud800"',
  '"\\x"',
  '""',
  '"é"',
  '"漢"',
  '"\u2028"',
  '"\u007f"',
  '"\\u0000"',
  '"a b"',
  '"job_1"',
  '"job 1"',
  '"job\\u00311"',
  `"${'j'.repeat(129)}"`,
  '"completed"',
  '"failed"',
  '"processing"',
  '"paused"',
  '"Completed"',
  '"complet\\u0065d"',
  '"2026-01-31T12:00:00Z"',
  '"2026-01-31T12:00:00.123456789Z"',
  '"2026-02-29T12:00:00Z"',
  '"2024-02-29T12:00:00Z"',
  '"2026-01-31T12:00:00+00:00"',
  '"2026-01-31T12:00:00-02:30"',
  '"2026-01-31T12:00Z"',
  '"2026-01-31T24:00:00Z"',
  '"0000-01-01T00:00:00Z"',
  '"2026-01-31T12:00:60Z"',
  '"2026-01-31t12:00:00z"',
  '"2026-01-31"',
  '"2026-01-31T12:00:00Z "',
];
const KEYS = [
  'trace',
  '__proto__',
  'constructor',
  'rawJSON',
  '',
  '0',
  '12',
  '9lives',
  'é',
  'a b',
  'a\\u0062',
  'job\\u005fid',
  '\\"',
  'job_id',
  'status',
  'progress_percentage',
  'error_code',
  'completed_at',
  'estimated_completion',
  'cost_micros',
  'a',
  'a!',
  'a ',
  'A',
  '\ud83d\ude00',
  '\uffee',
  '"',
  '\u0001',
];

const content = fc.constantFrom(completed('job_1'), failed('job_1'), progress('job_1', 45));
const members = content.map((fields) =>
  Object.entries(fields).map(([key, value]) => [key, JSON.stringify(value)] as const),
);
const extra = fc.tuple(fc.constantFrom(...KEYS), fc.constantFrom(...VALUES));
const space = fc.constantFrom('', '', '', '', ' ', '  ');
/** Nearly a notification: some fields have another value, some are missing, some are new; in any order. */
const almost = fc
  .tuple(
    members,
    fc.array(fc.tuple(fc.nat(), fc.constantFrom(...VALUES)), { maxLength: 1 }),
    fc.array(fc.nat(60), { maxLength: 1 }),
    fc.array(extra, { maxLength: 2 }),
    fc.infiniteStream(fc.nat(1_000)),
    fc.infiniteStream(space),
  )
  .map(([known, changes, missing, extras, places, spaces]) => {
    const all = known.map(([key, text]) => [key, text] as [string, string]);
    for (const [at, text] of changes) (all[at % all.length] as [string, string])[1] = text;
    for (const at of missing) all.splice(at, 1);
    for (const [key, text] of extras)
      all.splice((places.next().value ?? 0) % (all.length + 1), 0, [key, text]);
    const next = () => spaces.next().value ?? '';
    const written = all.map(([key, text]) => `${next()}"${key}"${next()}:${next()}${text}${next()}`);
    return `${next()}{${written.join(',')}}${next()}`;
  });
/** One or two characters of it are lost, or others are put in. */
const damaged = fc
  .tuple(
    almost,
    fc.nat(),
    fc.nat(2),
    fc.constantFrom('', '"', '\\', '{', '}', ',', ':', ' ', '\t', '0', '-', '.', 'e', '\u0000'),
  )
  .map(([text, place, lost, put]) => {
    const at = place % text.length;
    // A text that was UTF-8 has no half of a character.
    return (text.slice(0, at) + put + text.slice(at + lost)).toWellFormed();
  });

test('property: what is understood by hand is what the schemas make of it: event, data, hash and drift', () => {
  let events = 0;
  fc.assert(
    fc.property(fc.oneof(almost, damaged), (text) => {
      const usual = understandUsual(text);
      if (usual === undefined) return;
      events += 1;
      expect(usual).toEqual(understandAny(text));
    }),
    { numRuns: runs(8_000) },
  );
  expect(events).toBeGreaterThan(400); // and not nothing at all
});
