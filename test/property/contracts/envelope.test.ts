// Whatever is understood and published has the form of an event: the released JSON Schemas and parseEvent take it.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { CONTRACTS } from '../../../scripts/contracts/documents.ts';
import { dataSchema, eventSchemas, type Kind, KINDS, parseEvent } from '../../../src/event/index.ts';
import { type AuthenticBody, toCloudEvent, understand } from '../../../src/ledger/index.ts';
import { runs } from '../../only-in-all.ts';

const RUNS = runs(500);
const DAY_MS = 86_400_000;

const ajv = new Ajv2020({ strict: true });
addFormats.default(ajv);
for (const name of ['envelope', ...KINDS])
  ajv.addSchema(JSON.parse(readFileSync(join(CONTRACTS, `events/${name}.v1.json`), 'utf8')) as object);

const text = fc.string({ unit: 'binary', maxLength: 40 });
const jobId = fc
  .oneof(fc.string({ unit: 'binary', minLength: 1, maxLength: 128 }), fc.stringMatching(/^[!-~]{1,128}$/))
  .filter((id) => /^[^\p{C}\p{Z}]+$/u.test(id) && Buffer.byteLength(id) <= 128);
/** Any day from the year 1 to 9999, any fraction and any time zone, as far as it stays within these years in UTC. */
const time = fc
  .tuple(
    fc.integer({ min: Date.parse('0001-01-02') / DAY_MS, max: Date.parse('9999-12-30') / DAY_MS }),
    fc.integer({ min: 0, max: 86_399 }),
    fc.stringMatching(/^(\.\d{1,12})?$/),
    fc.stringMatching(/^(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/),
  )
  .map(([day, second, fraction, zone]) => {
    const written = new Date(day * DAY_MS + second * 1_000).toISOString().slice(0, -'.000Z'.length);
    return `${written}${fraction}${zone}`;
  });
const integer = fc.maxSafeInteger();
const percentage = fc.integer({ min: 0, max: 100 });

const fields: Record<Kind, fc.Arbitrary<object>> = {
  completed: fc.record({
    job_id: jobId,
    status: fc.constant('completed'),
    job_type: text,
    progress_percentage: percentage,
    cost_micros: integer,
    cost_cents: integer,
    processing_time_seconds: integer,
    output_size_bytes: integer,
    input_format: text,
    output_format: text,
    created_at: time,
    completed_at: time,
  }),
  failed: fc.record({
    job_id: jobId,
    status: fc.constant('failed'),
    job_type: text,
    progress_percentage: percentage,
    error_message: text,
    error_code: text,
    created_at: time,
    failed_at: time,
  }),
  progress: fc.record(
    {
      job_id: jobId,
      status: fc.constant('processing'),
      progress_percentage: percentage,
      estimated_completion: time,
    },
    { requiredKeys: ['job_id', 'status', 'progress_percentage'] },
  ),
};

const delivery = fc.record({
  known: fc.constantFrom(...KINDS).chain((kind) => fields[kind]),
  unknown: fc.dictionary(text, fc.jsonValue({ maxDepth: 2 })),
  source: fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,62}$/),
  sequence: fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }).map(String),
  late: fc.boolean(),
  recordedAt: fc.date({ min: new Date('2020-01-01'), max: new Date('2100-01-01'), noInvalidDate: true }),
});

test('every event that can be published is valid by its released schemas, and parseEvent reads it', () => {
  fc.assert(
    fc.property(delivery, ({ known, unknown, ...recorded }) => {
      const body = Buffer.from(JSON.stringify({ ...unknown, ...known })) as AuthenticBody;
      const understanding = understand(body);
      if (understanding.outcome !== 'event') throw new Error(JSON.stringify(understanding));
      const { kind, json } = toCloudEvent({ ...recorded, ...understanding.event });
      const event = JSON.parse(json) as { data: unknown };

      expect(ajv.validate('urn:tallyhook:schema:envelope:1', event)).toBe(true);
      expect(ajv.validate(dataSchema(kind), event.data)).toBe(true);
      expect(parseEvent(json)).toMatchObject({ outcome: 'event', kind });
    }),
    { numRuns: RUNS },
  );
});

test('the fields above are those of the schemas', () => {
  for (const kind of KINDS) {
    const [sample] = fc.sample(
      fields[kind].filter((made) => Object.keys(made).length > 3),
      1,
    );
    expect(Object.keys(sample ?? {}).toSorted()).toEqual(Object.keys(eventSchemas[kind].shape).toSorted());
  }
});
