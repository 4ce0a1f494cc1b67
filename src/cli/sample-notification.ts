// The notification that `tallyhook send` sends: the fields of service interface 6.2, with values that a real job could have.

import { randomBytes } from 'node:crypto';

export const KINDS = ['completed', 'failed', 'progress'] as const;
type Kind = (typeof KINDS)[number];

/** `percent` is the progress that it reports; a job that is completed is at 100. */
export function sampleNotification(
  kind: Kind,
  { job = `job_${randomBytes(6).toString('hex')}`, percent }: { job?: string | undefined; percent: number },
): Buffer {
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
      created_at: at(-60),
      completed_at: at(0),
    },
    failed: {
      status: 'failed',
      job_type: 'video',
      progress_percentage: percent,
      error_message: 'the input file is corrupted or cannot be read',
      error_code: 'INVALID_INPUT',
      created_at: at(-60),
      failed_at: at(0),
    },
    progress: { status: 'processing', progress_percentage: percent, estimated_completion: at(90) },
  };
  return Buffer.from(JSON.stringify({ job_id: job, ...fields[kind] }));
}

const at = (secondsFromNow: number) => new Date(Date.now() + secondsFromNow * 1_000).toISOString();
