import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../only-in-all.ts';
import { type ExactValue, readExactly } from '../../support/exact-json.ts';
import { understood } from '../../support/records.ts';
import { completed, failed, type Notification, progress } from '../../support/sender.ts';

/** JSON text and not values: with numbers, escapes and white space that JSON.stringify would never write. */
const space = fc.constantFrom('', '', '', ' ', '\n', '\t\r\n');
const digits = (min: number, max: number) =>
  fc.string({ unit: fc.stringMatching(/^[0-9]$/), minLength: min, maxLength: max });
const numberText = fc
  .tuple(
    fc.constantFrom('', '-'),
    fc.oneof(
      fc.constantFrom(
        '0',
        '9007199254740991',
        '9007199254740992',
        '9007199254740993',
        '18446744073709551616',
      ),
      fc.tuple(fc.stringMatching(/^[1-9]$/), digits(0, 40)).map((parts) => parts.join('')),
    ),
    fc.oneof(
      fc.constant(''),
      digits(1, 30).map((text) => `.${text}`),
    ),
    fc.oneof(
      fc.constant(''),
      fc
        .tuple(fc.constantFrom('e', 'E'), fc.constantFrom('', '+', '-'), fc.integer({ min: 0, max: 400 }))
        .map((parts) => parts.join('')),
    ),
  )
  .map((parts) => parts.join(''));
const quoted = (text: string) => JSON.stringify(text);
const escaped = (text: string) =>
  `"${Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`;
const anyString = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), fc.string());
const stringText = fc.tuple(anyString, fc.constantFrom(quoted, escaped)).map(([text, write]) => write(text));
const keyText = (taken: readonly string[]) =>
  fc.oneof(
    anyString.filter((key) => !taken.includes(key)),
    fc.constantFrom('__proto__', 'constructor', 'toString', '0', 'rawJSON'),
  );

function objectText(value: fc.Arbitrary<string>, taken: readonly string[] = []): fc.Arbitrary<string[]> {
  const member = fc.tuple(keyText(taken), fc.constantFrom(quoted, escaped), space, value, space);
  return fc
    .uniqueArray(member, { selector: ([key]) => key, maxLength: 5 })
    .map((members) =>
      members.map(([key, write, before, text, after]) => `${before}${write(key)}:${before}${text}${after}`),
    );
}
const { value: valueText } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    numberText,
    stringText,
    fc.constantFrom('true', 'false', 'null'),
    fc.array(tie('value'), { maxLength: 4 }).map((items) => `[${items.join(',')}]`),
    objectText(tie('value')).map((members) => `{${members.join(',')}}`),
  ),
}));

const two = (value: number) => String(value).padStart(2, '0');

const notification = fc
  .tuple(fc.constantFrom('completed', 'failed', 'processing'), fc.integer({ min: 0, max: 100 }))
  .map(([status, percent]): Notification => {
    if (status === 'completed') return completed('job_1', { progress_percentage: percent });
    return status === 'failed' ? failed('job_1') : progress('job_1', percent);
  });
const notificationText = notification.chain((known) =>
  objectText(valueText, Object.keys(known))
    .chain((extras) => {
      const members = Object.entries(known).map(([key, value]) => `${quoted(key)}: ${JSON.stringify(value)}`);
      const all = [...members, ...extras];
      return fc.shuffledSubarray(all, { minLength: all.length });
    })
    .map((members) => `{${members.join(',')}}`),
);

test('property: what is accepted is published with every value as it was sent, to the last digit', () => {
  fc.assert(
    fc.property(notificationText, (text) => {
      const understanding = understood(text);
      if (understanding.outcome !== 'event')
        throw new Error(`${understanding.outcome}: ${understanding.reason}`);
      expect(readExactly(understanding.event.data)).toEqual(readExactly(text));
    }),
    { numRuns: runs(1_000) },
  );
});

test('property: numbers in known fields are published with the value they were sent with, or quarantined', () => {
  fc.assert(
    fc.property(numberText, (number) => {
      const text = JSON.stringify(completed('job_1')).replace(':1250000', `:${number}`);
      const understanding = understood(text);
      const sent = (readExactly(text) as Map<string, ExactValue>).get('cost_micros') as {
        coefficient: bigint;
        exponent: number;
      };
      const isInteger = sent.exponent >= 0;
      const magnitude = sent.coefficient < 0n ? -sent.coefficient : sent.coefficient;
      const isSafe = isInteger && magnitude * 10n ** BigInt(sent.exponent) <= BigInt(Number.MAX_SAFE_INTEGER);
      expect(understanding.outcome).toBe(isSafe ? 'event' : 'quarantined');
      if (understanding.outcome !== 'event') return;
      const published = (readExactly(understanding.event.data) as Map<string, ExactValue>).get('cost_micros');
      expect(published).toEqual(sent);
    }),
    { numRuns: runs(1_000) },
  );
});

test('property: timestamps of any zone and precision keep their instant and their digits', () => {
  const offset = fc
    .tuple(fc.constantFrom('+', '-'), fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 59 }))
    .map(([sign, hours, minutes]) => ({
      text: `${sign}${two(hours)}:${two(minutes)}`,
      ms: (sign === '-' ? -1 : 1) * (hours * 60 + minutes) * 60_000,
    }));
  const from = Date.UTC(1000, 0, 2);
  const to = Date.UTC(9999, 11, 30);
  fc.assert(
    fc.property(fc.integer({ min: from, max: to }), digits(0, 20), offset, (epochMs, fraction, zone) => {
      const seconds = Math.floor(epochMs / 1_000) * 1_000;
      const local = new Date(seconds + zone.ms).toISOString().slice(0, 19);
      const tail = fraction === '' ? '' : `.${fraction}`;
      const understanding = understood(
        JSON.stringify(completed('job_1', { completed_at: `${local}${tail}${zone.text}` })),
      );
      expect(understanding).toMatchObject({
        outcome: 'event',
        event: { occurredAt: `${new Date(seconds).toISOString().slice(0, 19)}${tail}Z` },
      });
    }),
    { numRuns: runs(500) },
  );
});

test('property: two spellings of the same values have one content hash, and other values another', () => {
  fc.assert(
    fc.property(notificationText, notificationText, (one, other) => {
      const [a, b] = [understood(one), understood(other)];
      if (a.outcome !== 'event' || b.outcome !== 'event') throw new Error('not understood');
      const respelled = understood(a.event.data);
      if (respelled.outcome !== 'event') throw new Error('what we publish is not understood');
      expect(respelled.event.contentHash).toEqual(a.event.contentHash);
      const same = isEqual(readExactly(one), readExactly(other));
      expect(a.event.contentHash.equals(b.event.contentHash)).toBe(same);
    }),
    { numRuns: runs(300) },
  );
});

test('property: any JSON has an answer, and none throws', () => {
  const outcomes = ['event', 'quarantined', 'malformed'];
  const anyJson = fc.oneof(
    valueText,
    fc.json(),
    fc
      .record({ job_id: valueText, status: valueText })
      .map(({ job_id, status }) => `{"job_id":${job_id},"status":${status}}`),
    fc
      .tuple(fc.constantFrom('completed', 'failed', 'processing', 'other'), objectText(valueText))
      .map(([status, members]) => `{${['"job_id":"job_1"', `"status":"${status}"`, ...members].join(',')}}`),
  );
  fc.assert(
    fc.property(anyJson, (text) => {
      expect(outcomes).toContain(understood(text).outcome);
    }),
    { numRuns: runs(1_000) },
  );
});

test('property: any field of a notification may be any JSON: an event, or quarantined, and never altered', () => {
  fc.assert(
    fc.property(notification, fc.nat(), valueText, (content, pick, text) => {
      const fields = Object.keys(content).filter((field) => field !== 'job_id' && field !== 'status');
      const field = fields[pick % fields.length] ?? '';
      const members = Object.entries(content).map(
        ([key, value]) => `"${key}":${key === field ? text : JSON.stringify(value)}`,
      );
      const understanding = understood(`{${members.join(',')}}`);
      expect(['event', 'quarantined']).toContain(understanding.outcome);
      if (understanding.outcome !== 'event' || field.endsWith('_at') || field === 'estimated_completion')
        return;
      const published = readExactly(understanding.event.data) as Map<string, ExactValue>;
      expect(published.get(field)).toEqual(readExactly(text));
    }),
    { numRuns: runs(500) },
  );
});

test('property: any bytes have an answer, and none throws', () => {
  const broken = fc
    .tuple(notificationText, fc.nat(), fc.uint8Array({ minLength: 1, maxLength: 3 }))
    .map(([text, at, bytes]) => {
      const body = Buffer.from(text);
      body.set(bytes, at % Math.max(1, body.length - bytes.length));
      return body;
    });
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
        broken,
      ),
      (body) => {
        expect(['event', 'quarantined', 'malformed']).toContain(understood(body).outcome);
      },
    ),
    { numRuns: runs(1_000) },
  );
});

function isEqual(one: ExactValue, other: ExactValue): boolean {
  const plain = (value: ExactValue): unknown => {
    if (value instanceof Map) {
      return {
        object: [...value].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, item]) => [key, plain(item)]),
      };
    }
    if (Array.isArray(value)) return value.map(plain);
    if (typeof value === 'object' && value !== null)
      return { number: `${value.coefficient}e${value.exponent}` };
    return value;
  };
  return JSON.stringify(plain(one)) === JSON.stringify(plain(other));
}
