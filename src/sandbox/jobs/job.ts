// What a conversion job is, as every part of the sandbox knows it: the store keeps it, the interface shows it, webhooks
// tell of it. Names and values are those of the service's interface (spec 2.1 and 3).

export type JobStatus = 'processing' | 'completed' | 'failed';

/** As the service stores and shows it; times are ISO 8601 UTC with milliseconds. */
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
