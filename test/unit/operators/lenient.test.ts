import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { answers, items } from '../../../src/operators/client/answers.ts';
import { lenient } from '../../../src/operators/client/lenient.ts';
import { LISTS } from '../../../src/operators/lists.contract.ts';

/** What passes, as it comes out; undefined for what is refused. */
const read = (schema: z.ZodType, value: unknown) => lenient(schema).safeParse(value).data;

describe('a lenient schema', () => {
  test('keeps fields that it does not know, and misses those that are not there', () => {
    const schema = z.object({ id: z.string() });
    expect(read(schema, { id: 'a', since: 1 })).toEqual({ id: 'a', since: 1 });
    expect(read(schema, { since: 1 })).toBeUndefined();
    expect(read(z.strictObject({ id: z.string() }), { id: 'a', since: 1 })).toEqual({ id: 'a', since: 1 });
  });

  test.for([
    ['an enumerated word', z.enum(['a', 'b']), 'c', 1],
    ['a literal', z.literal('a'), 'c', 1],
    ['a text of a form', z.uuid(), 'no uuid', 1],
    ['a text with checks', z.string().min(9).regex(/^x/), 'a', null],
    ['a time', z.iso.datetime(), 'soon', 1],
    ['a whole number within limits', z.int().min(1).max(3), 4.5, '4'],
    ['a number', z.number(), 4.5, '4'],
    ['a boolean', z.boolean(), true, 'true'],
    ['anything', z.unknown(), { a: 1 }, undefined],
    ['an array of a length', z.array(z.string()).max(1), ['a', 'b'], ['a', 1]],
    ['a record', z.record(z.string(), z.int()), { a: 1.5 }, { a: 'b' }],
    ['what may be null', z.uuid().nullable(), null, 1],
    ['what may be missing', z.object({ a: z.uuid().optional() }), {}, { a: 1 }],
  ] as const)('reads %s', ([_what, schema, passes, fails]) => {
    expect(read(schema, passes)).toEqual(passes);
    expect(read(schema, fails)).toBeUndefined();
  });

  test('reads a union as one object: what all have is there, what some have may be', () => {
    const schema = z.discriminatedUnion('what', [
      z.object({ what: z.literal('text'), at: z.string(), text: z.string() }),
      z.object({ what: z.literal('number'), at: z.string(), number: z.int() }),
    ]);
    for (const passes of [
      { what: 'text', at: 'now', text: 'a' },
      { what: 'number', at: 'now', number: 1 },
      { what: 'something newer', at: 'now', other: 1 },
    ]) {
      expect(read(schema, passes)).toEqual(passes);
    }
    expect(read(schema, { what: 'text', at: 'now', text: 1 })).toBeUndefined();
    expect(read(schema, { what: 'text', text: 'a' })).toBeUndefined();
  });

  test.for([z.date(), z.bigint(), z.string().transform(Number), z.tuple([z.string()])])(
    'is not made of a kind that no answer has: %#',
    (schema) => {
      expect(() => lenient(z.object({ a: z.array(schema) }))).toThrow(TypeError);
    },
  );

  test('has the types of what passes', () => {
    const schema = lenient(
      z.object({
        state: z.enum(['on', 'off']),
        counts: z.record(z.string(), z.int()),
        notes: z.array(z.object({ text: z.string().nullable() })),
        peer_address: z.string().nullable(),
      }),
    );
    type Read = z.infer<typeof schema>;
    expectTypeOf<Read['state']>().toEqualTypeOf<string>();
    expectTypeOf<Read['counts'][string]>().toEqualTypeOf<number>();
    expectTypeOf<Read['notes'][number]['text']>().toEqualTypeOf<string | null>();
    expectTypeOf<Read['peer_address']>().toEqualTypeOf<string | null | undefined>();
  });
});

describe('the answers', () => {
  test('of an older service pass, which does not send what was added later', () => {
    expect(items.deliveries.safeParse(DELIVERY).success).toBe(true);
    expect(answers.sources.safeParse({ items: [SOURCE] }).success).toBe(true);
    const { path: _path, ...without } = DELIVERY;
    expect(items.deliveries.safeParse(without).success).toBe(false);
  });

  test('are known of every list', () => {
    expect(Object.keys(items)).toEqual(Object.keys(LISTS));
  });
});

const DELIVERY = {
  id: '1',
  received_at: '2026-01-15T10:30:00Z',
  source: 'default',
  outcome: 'accepted',
  http_status: 202,
  reason: null,
  job_id: 'job_1',
  status: 'completed',
  progress_percentage: null,
  error_code: null,
  event_id: 'default:job_1:completed',
  path: '/webhooks',
  remote_address: null,
  secret_fingerprint: null,
  body_bytes: 2,
  body_kept: true,
  released_at: null,
};
const SOURCE = {
  source: 'default',
  configured: true,
  last_delivery_at: null,
  rates: { last_5m: 0, last_1h: 0, last_24h: 0 },
  secrets: [],
  drift: [],
};
