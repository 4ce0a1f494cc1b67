// The notification that `tallyhook send` sends: the fields of service interface 6.2, with values that a real job could have.
// They depend on nothing but the arguments, so that a second call sends the same bytes, as the service's own retries do.

import { randomBytes } from 'node:crypto';
import type { Kind } from '../event/index.ts';

const JOB_DURATION_MS = 60_000;
/** When each sample job ends, unless told otherwise: the time in the examples of the documents. */
const SAMPLE_END_MS = Date.parse('2026-01-15T10:35:00Z');

/**
 * `percent` is the progress that it reports; a job that is completed is at 100. `endMs` is when the job ends, in milliseconds
 * since the epoch.
 */
export function sampleNotification(
  kind: Kind,
  {
    job = `job_${randomBytes(6).toString('hex')}`,
    percent,
    endMs = SAMPLE_END_MS,
  }: { job?: string | undefined; percent: number; endMs?: number | undefined },
): Buffer {
  const created = new Date(endMs - JOB_DURATION_MS).toISOString();
  const ended = new Date(endMs).toISOString();
  const fields = {
    completed: {
      status: 'completed',
      job_type: 'video',
      progress_percentage: 100,
      cost_micros: 1_250_000,
      cost_cents: 125,
      processing_time_seconds: 42,
      output_size_bytes: 10_485_760,
      input_format: 'mp4',
      output_format: 'webm',
      created_at: created,
      completed_at: ended,
    },
    failed: {
      status: 'failed',
      job_type: 'video',
      progress_percentage: percent,
      error_message: 'the input file is corrupted or cannot be read',
      error_code: 'INVALID_INPUT',
      created_at: created,
      failed_at: ended,
    },
    progress: { status: 'processing', progress_percentage: percent, estimated_completion: ended },
  };
  return Buffer.from(JSON.stringify({ job_id: job, ...fields[kind] }));
}
