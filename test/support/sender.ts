// The sender's side: notifications with the fields of service interface 6.2, signed as in 6.3, by code that shares nothing with
// intake.

import { createHmac, randomBytes } from 'node:crypto';

export const SECRET = 'a-test-secret-of-enough-bytes-0001';

export type Notification = Record<string, unknown> & { job_id: string; status: string };
export type Reply = {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly headers: Headers;
  readonly ms: number;
};

export const newJobId = (): string => `job_${randomBytes(6).toString('hex')}`;

/** A source that is not set up, for rows that a test puts under it. */
export const newSource = (): string => `team-${randomBytes(6).toString('hex')}`;

export function completed(jobId: string, fields: Record<string, unknown> = {}): Notification {
  return {
    job_id: jobId,
    status: 'completed',
    job_type: 'video',
    progress_percentage: 100,
    cost_micros: 1_250_000,
    cost_cents: 125,
    processing_time_seconds: 42,
    output_size_bytes: 10_485_760,
    input_format: 'mp4',
    output_format: 'webm',
    created_at: '2026-01-15T10:30:00Z',
    completed_at: '2026-01-15T10:35:00Z',
    ...fields,
  };
}

export function failed(jobId: string, fields: Record<string, unknown> = {}): Notification {
  return {
    job_id: jobId,
    status: 'failed',
    job_type: 'video',
    progress_percentage: 30,
    error_message: 'the input file cannot be read',
    error_code: 'INVALID_INPUT',
    created_at: '2026-01-15T10:30:00Z',
    failed_at: '2026-01-15T10:31:00Z',
    ...fields,
  };
}

export function progress(jobId: string, percent: number, fields: Record<string, unknown> = {}): Notification {
  return {
    job_id: jobId,
    status: 'processing',
    progress_percentage: percent,
    estimated_completion: '2026-01-15T10:35:00Z',
    ...fields,
  };
}

export function sign(body: string | Buffer, secret = SECRET): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}

/** Sends a notification (or text, or bytes) signed with `secret`. `headers` replace the usual ones; undefined removes one. */
export async function deliver(
  url: string,
  content: Notification | string | Buffer,
  options: { secret?: string; headers?: Record<string, string | undefined>; method?: string } = {},
): Promise<Reply> {
  const body = typeof content === 'string' || Buffer.isBuffer(content) ? content : JSON.stringify(content);
  const headers = Object.entries({
    'content-type': 'application/json',
    'x-service-signature': sign(body, options.secret),
    ...options.headers,
  }).filter((header): header is [string, string] => header[1] !== undefined);
  const startedMs = performance.now();
  const response = await fetch(url, {
    method: options.method ?? 'POST',
    headers,
    body: typeof body === 'string' ? body : new Uint8Array(body),
  });
  const text = await response.text();
  return {
    status: response.status,
    body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
    headers: response.headers,
    ms: performance.now() - startedMs,
  };
}

export function isAcknowledged({ status }: { readonly status: number | undefined }): boolean {
  return status !== undefined && status >= 200 && status < 300;
}
