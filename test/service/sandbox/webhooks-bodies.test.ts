import { expect, test } from 'vitest';
import { understand } from '../../../src/ledger/understanding/understand.ts';
import { createKeyRing, verifySignature } from '../../../src/intake/signature.ts';
import type { Job } from '../../../src/sandbox/jobs/job.ts';
import { completedBody, failedBody, progressBody } from '../../../src/sandbox/webhooks/bodies.ts';
import { sign } from '../../../src/sandbox/webhooks/signature.ts';
import { secretOf } from '../../support/records.ts';
import { SECRET } from '../../support/sender.ts';

const underWay: Job = {
  job_id: 'job_abcdefghijklmnopqrstuvwx',
  status: 'processing',
  job_type: 'video',
  input_url: 'https://files.example/in.mp4?token=private',
  output_url: 'https://files.example/out.webm?token=private',
  input_format: 'mp4',
  output_format: 'webm',
  webhook_url: 'https://relay.example/webhooks',
  progress_percentage: 40,
  created_at: '2026-01-15T10:30:00.000Z',
  estimated_completion: '2026-01-15T10:35:00.000Z',
  completed_at: null,
  failed_at: null,
  error_code: null,
  error_message: null,
  cost_micros: null,
  cost_cents: null,
  processing_time_seconds: null,
  output_size_bytes: null,
};

const completed: Job = {
  ...underWay,
  status: 'completed',
  progress_percentage: 100,
  estimated_completion: null,
  completed_at: '2026-01-15T10:34:59.123Z',
  cost_micros: 6_000,
  cost_cents: 1,
  processing_time_seconds: 299,
  output_size_bytes: 10_485_760,
};

const failed: Job = {
  ...underWay,
  status: 'failed',
  estimated_completion: null,
  failed_at: '2026-01-15T10:31:00.000Z',
  error_code: 'INVALID_INPUT',
  error_message: 'größer als erlaubt ✂',
};

const EVENTS = [
  {
    kind: 'completed',
    body: completedBody(completed),
    text: `{"job_id":"job_abcdefghijklmnopqrstuvwx","status":"completed","job_type":"video",
      "progress_percentage":100,"cost_micros":6000,"cost_cents":1,"processing_time_seconds":299,
      "output_size_bytes":10485760,"input_format":"mp4","output_format":"webm",
      "created_at":"2026-01-15T10:30:00.000Z","completed_at":"2026-01-15T10:34:59.123Z"}`,
  },
  {
    kind: 'failed',
    body: failedBody(failed),
    text: `{"job_id":"job_abcdefghijklmnopqrstuvwx","status":"failed","job_type":"video",
      "progress_percentage":40,"error_message":"größer als erlaubt ✂","error_code":"INVALID_INPUT",
      "created_at":"2026-01-15T10:30:00.000Z","failed_at":"2026-01-15T10:31:00.000Z"}`,
  },
  {
    kind: 'progress',
    body: progressBody(underWay),
    text: `{"job_id":"job_abcdefghijklmnopqrstuvwx","status":"processing","progress_percentage":40,
      "estimated_completion":"2026-01-15T10:35:00.000Z"}`,
  },
] as const;

test.each(EVENTS)('a $kind event has exactly the fields of the interface, in its order', ({ body, text }) => {
  expect(body.toString('utf8')).toBe(text.replaceAll(/\n\s*/g, ''));
});

test.each(EVENTS)('a relay verifies and understands a signed $kind event', ({ body }) => {
  const ring = createKeyRing(new Map([['default', [secretOf(SECRET)]]]));
  const verified = verifySignature(ring, 'default', sign(SECRET, body), body);

  expect(verified).toBeDefined();
  expect(verified && understand(verified.body)).toMatchObject({
    outcome: 'event',
    event: { jobId: underWay.job_id, data: body.toString('utf8') },
  });
});

test('progress of a job whose end nobody can tell yet leaves the estimate out', () => {
  const body = progressBody({ ...underWay, estimated_completion: null });

  expect(JSON.parse(body.toString('utf8'))).toEqual({
    job_id: underWay.job_id,
    status: 'processing',
    progress_percentage: 40,
  });
});

test('nothing is told of a job that is in another state or lacks a field', () => {
  expect(() => completedBody(underWay)).toThrow('processing cannot be told as completed');
  expect(() => failedBody(completed)).toThrow('completed cannot be told as failed');
  expect(() => progressBody(failed)).toThrow('failed cannot be told as processing');
  expect(() => completedBody({ ...completed, cost_cents: null })).toThrow('has no cost_cents');
  expect(() => failedBody({ ...failed, error_code: null })).toThrow('has no error_code');
});
