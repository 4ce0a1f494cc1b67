// The body of a webhook: one JSON object with exactly the fields that service interface 6.2 lists for its kind, in that order.
// No field names the kind; receivers tell it by `status`.

import type { Job } from '../jobs/job.ts';

type Fields = readonly (keyof Job)[];

const COMPLETED: Fields = [
  'job_id',
  'status',
  'job_type',
  'progress_percentage',
  'cost_micros',
  'cost_cents',
  'processing_time_seconds',
  'output_size_bytes',
  'input_format',
  'output_format',
  'created_at',
  'completed_at',
];

const FAILED: Fields = [
  'job_id',
  'status',
  'job_type',
  'progress_percentage',
  'error_message',
  'error_code',
  'created_at',
  'failed_at',
];

const PROGRESS: Fields = ['job_id', 'status', 'progress_percentage'];

/** @throws Error for a job that is not completed or lacks a field. */
export function completedBody(job: Job): Buffer {
  return body(job, 'completed', COMPLETED);
}

/** @throws Error for a job that has not failed or lacks a field. */
export function failedBody(job: Job): Buffer {
  return body(job, 'failed', FAILED);
}

/**
 * Leaves out `estimated_completion` while it is unknown: the interface defines it as a string, not as nullable.
 * @throws Error for a job that has ended.
 */
export function progressBody(job: Job): Buffer {
  const isEstimated = job.estimated_completion !== null;
  return body(job, 'processing', isEstimated ? [...PROGRESS, 'estimated_completion'] : PROGRESS);
}

function body(job: Job, status: Job['status'], fields: Fields): Buffer {
  if (job.status !== status) throw new Error(`a job that is ${job.status} cannot be told as ${status}`);
  const missing = fields.filter((field) => job[field] === null);
  if (missing.length > 0) throw new Error(`a job that is ${status} has no ${missing.join(', ')}`);
  // The list of keys both selects them and sets their order.
  return Buffer.from(JSON.stringify(job, [...fields]));
}
