import { expect, test } from 'vitest';
import { CLOUD_EVENT_TYPE } from '../../../src/event/index.ts';
import { type EntryEvent, toMessage } from '../../../src/relay/cloud-event.ts';

const completed: EntryEvent = {
  sequence: '42',
  source: 'team-a',
  jobId: 'job_7f3a',
  status: 'completed',
  progress: null,
  late: false,
  occurredAt: '2026-01-15T10:35:00.123456Z',
  recordedAt: new Date('2026-01-15T10:35:01.250Z'),
  data: '{"job_id":"job_7f3a","status":"completed","big":12345678901234567890.10}',
};

test('a completed job becomes exactly this document', () => {
  const message = toMessage(completed, 'job');

  expect(message.body.toString()).toBe(
    '{"specversion":"1.0","id":"team-a:job_7f3a:completed","type":"conversion.job.completed",' +
      '"source":"/sources/team-a","subject":"job_7f3a","time":"2026-01-15T10:35:00.123456Z",' +
      '"recordedtime":"2026-01-15T10:35:01.250Z","sequence":"0000000000000000042",' +
      '"datacontenttype":"application/json","dataschema":"urn:tallyhook:schema:conversion.job.completed:1",' +
      '"data":{"job_id":"job_7f3a","status":"completed","big":12345678901234567890.10}}',
  );
  expect(message).toMatchObject({
    messageId: 'team-a:job_7f3a:completed',
    routingKey: 'job.completed.team-a',
    contentType: CLOUD_EVENT_TYPE,
    type: 'conversion.job.completed',
    timestamp: completed.recordedAt,
  });
  expect(CLOUD_EVENT_TYPE).toBe('application/cloudevents+json');
});

test('late progress becomes exactly this document', () => {
  const message = toMessage(
    {
      ...completed,
      source: 'default',
      status: 'processing',
      progress: 45,
      late: true,
      occurredAt: null,
      data: '{"progress_percentage":45}',
    },
    'job',
  );

  expect(JSON.parse(message.body.toString())).toStrictEqual({
    specversion: '1.0',
    id: 'default:job_7f3a:processing:45',
    type: 'conversion.job.progress',
    source: '/sources/default',
    subject: 'job_7f3a',
    time: '2026-01-15T10:35:01.250Z', // progress does not say when it happened
    recordedtime: '2026-01-15T10:35:01.250Z',
    sequence: '0000000000000000042',
    late: true,
    datacontenttype: 'application/json',
    dataschema: 'urn:tallyhook:schema:conversion.job.progress:1',
    data: { progress_percentage: 45 },
  });
  expect(message.routingKey).toBe('job.progress.default');
});

test('a failed job is routed as failed', () => {
  expect(toMessage({ ...completed, status: 'failed' }, 'job')).toMatchObject({
    messageId: 'team-a:job_7f3a:failed',
    routingKey: 'job.failed.team-a',
    type: 'conversion.job.failed',
  });
});

test('the same entry gives the same bytes every time', () => {
  expect(toMessage(completed, 'job').body.equals(toMessage({ ...completed }, 'job').body)).toBe(true);
});

test('sequences sort as text as they do as numbers, up to the last 64-bit one', () => {
  const sequences = ['1', '9', '10', '9223372036854775807'].map(
    (sequence) =>
      (JSON.parse(toMessage({ ...completed, sequence }, 'job').body.toString()) as { sequence: string })
        .sequence,
  );

  expect(sequences.toSorted()).toEqual(sequences);
  expect(new Set(sequences.map((sequence) => sequence.length)).size).toBe(1);
});

test('a job id with quotes, colons and letters of any script stays intact', () => {
  const jobId = 'a"b\\c:d:é漢';
  const message = toMessage({ ...completed, jobId }, 'job');

  expect(JSON.parse(message.body.toString())).toMatchObject({
    subject: jobId,
    id: `team-a:${jobId}:completed`,
  });
});
