import { describe, expect, test } from 'vitest';
import {
  type ConversionEvent,
  isCompleted,
  isFailed,
  isProgress,
  parseEvent,
} from '../../../src/event/index.ts';
import { toCloudEvent } from '../../../src/ledger/index.ts';

const published = (changes: object = {}) => {
  const { json } = toCloudEvent({
    sequence: '42',
    source: 'team-a',
    jobId: 'job_1',
    status: 'processing',
    progress: 45,
    late: true,
    occurredAt: null,
    recordedAt: new Date('2026-01-15T10:32:10.123Z'),
    data: '{"job_id":"job_1","status":"processing","progress_percentage":45,"new_field":[1]}',
  });
  return { ...(JSON.parse(json) as ConversionEvent), ...changes };
};
const without = (name: string) => {
  const { [name]: _left, ...rest } = published();
  return rest;
};

describe('an event', () => {
  test('is the same from text, bytes and an object, with all fields that the schemas do not know', () => {
    const event = published({ traceparent: 'x' });
    const expected = { outcome: 'event', kind: 'progress', event };

    expect(parseEvent(event)).toEqual(expected);
    expect(parseEvent(JSON.stringify(event))).toEqual(expected);
    expect(parseEvent(Buffer.from(JSON.stringify(event)))).toEqual(expected);
  });

  test('is told apart by its type', () => {
    const event = published();

    expect([isProgress, isCompleted, isFailed].map((is) => is(event))).toEqual([true, false, false]);
  });
});

describe('what is no event that this version knows', () => {
  test('another type, and another version of the data, are unknown and not invalid', () => {
    expect(parseEvent(published({ type: 'conversion.job.archived' }))).toEqual({
      outcome: 'unknown',
      type: 'conversion.job.archived',
      dataschema: 'urn:tallyhook:schema:conversion.job.progress:1',
    });
    const next = 'urn:tallyhook:schema:conversion.job.progress:2';
    expect(parseEvent(published({ dataschema: next }))).toMatchObject({
      outcome: 'unknown',
      dataschema: next,
    });
  });

  test.for([
    ['no JSON', '{', 'the body is not a JSON object'],
    ['no object', '[]', 'type is not a string'],
    ['nothing', '', 'the body is not a JSON object'],
    ['no UTF-8', Buffer.from([0xff]), 'the body is not a JSON object'],
  ] as const)('%s is invalid', ([, body, reason]) => {
    expect(parseEvent(body)).toEqual({ outcome: 'invalid', reason });
  });

  test.for([
    'id',
    'source',
    'subject',
    'time',
    'recordedtime',
    'sequence',
    'specversion',
    'data',
    'dataschema',
  ])('without %s it is invalid, and the reason names it', (name) => {
    expect(parseEvent(without(name))).toMatchObject({
      outcome: 'invalid',
      reason: expect.stringContaining(name) as string,
    });
  });

  test('data that breaks the schema is invalid, and no value is quoted', () => {
    const event = published({ data: { ...published().data, progress_percentage: 'all of it' } });

    expect(parseEvent(event)).toEqual({
      outcome: 'invalid',
      reason: 'data.progress_percentage must be a whole number from 0 to 100; it is a string',
    });
  });
});
