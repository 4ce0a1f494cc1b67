// A conversion job. Field names and values are those of service interface 2.1 and 3: the database stores
// them, the API returns them, and webhooks carry a selection of them.

import { newId } from '../ids.ts';

export type JobStatus = 'processing' | 'completed' | 'failed';

/** Times are ISO 8601 UTC with milliseconds. */
export type Job = {
  /** `job_` and 24 lowercase letters and digits. */
  readonly job_id: string;
  readonly status: JobStatus;
  readonly job_type: 'video';
  readonly input_url: string;
  readonly output_url: string;
  readonly input_format: string;
  readonly output_format: string;
  readonly webhook_url: string | null;
  readonly progress_percentage: number;
  readonly created_at: string;
  readonly estimated_completion: string | null;
  readonly completed_at: string | null;
  readonly failed_at: string | null;
  readonly error_code: string | null;
  readonly error_message: string | null;
  readonly cost_micros: number | null;
  readonly cost_cents: number | null;
  readonly processing_time_seconds: number | null;
  readonly output_size_bytes: number | null;
};

/** What a client sends to create a job. */
export type JobOrder = Pick<
  Job,
  'job_type' | 'input_url' | 'output_url' | 'input_format' | 'output_format' | 'webhook_url'
>;

export function newJob(order: JobOrder, createdAt: string): Job {
  return {
    job_id: newId('job'),
    status: 'processing',
    ...order,
    progress_percentage: 0,
    created_at: createdAt,
    estimated_completion: null,
    completed_at: null,
    failed_at: null,
    error_code: null,
    error_message: null,
    cost_micros: null,
    cost_cents: null,
    processing_time_seconds: null,
    output_size_bytes: null,
  };
}
