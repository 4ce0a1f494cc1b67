// The service's answers, as far as a client relies on them. The interface does not document the whole job, so only what
// every job has is required (service interface 2.1). Other fields are null if absent; unknown ones are dropped.

import { z } from 'zod';

const text = z.string().nullable().default(null);
const integer = z.int().nullable().default(null);
const time = z.iso.datetime({ offset: true }).nullable().default(null);

export const JOB_STATUSES = ['processing', 'completed', 'failed'] as const;

export const jobSchema = z.object({
  job_id: z.string().min(1),
  status: z.enum(JOB_STATUSES),
  progress_percentage: z.int().min(0).max(100),
  job_type: text,
  input_url: text,
  output_url: text,
  input_format: text,
  output_format: text,
  webhook_url: text,
  created_at: time,
  estimated_completion: time,
  completed_at: time,
  failed_at: time,
  error_code: text,
  error_message: text,
  cost_micros: integer,
  cost_cents: integer,
  processing_time_seconds: integer,
  output_size_bytes: integer,
});

export const jobPageSchema = z.object({
  jobs: z.array(jobSchema),
  next_cursor: z.string().min(1).nullable(),
});

export const accountSchema = z.object({
  account_id: z.string().min(1),
  name: text,
  tier: z.string(),
  environment: z.enum(['live', 'test']),
  token: z.object({
    name: z.string(),
    scopes: z.array(z.string()),
    expires_at: time,
    last_used_at: time,
  }),
  rate_limit: z.object({ requests_per_hour: integer, burst_per_minute: z.int() }),
  /** What the sandbox converts with; null for any other service. */
  engine: z.object({ kind: z.string(), version: z.string() }).nullable().default(null),
  sandbox: z.boolean().default(false),
});

export const errorSchema = z.object({
  error: z.string(),
  message: z.string(),
  details: z.array(z.object({ field: z.string(), message: z.string() })).default([]),
});

export type Job = z.infer<typeof jobSchema>;
export type JobStatus = Job['status'];
export type JobPage = z.infer<typeof jobPageSchema>;
export type Account = z.infer<typeof accountSchema>;
