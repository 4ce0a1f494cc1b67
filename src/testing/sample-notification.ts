// The notification that `tallyhook send` sends: the fields of service interface 6.2, with values that a real job could have.
// They depend on nothing but the options, so that a second call gives the same bytes, as the service's own retries do.

import type { ConversionEvent, Kind } from '../event/index.ts';

/** The type of the event of a kind. */
export type EventOf<K extends Kind> = Extract<ConversionEvent, { type: `conversion.job.${K}` }>;

/** Those that the schemas name: any other name is taken for a misspelling. */
type Named<Data> = {
  readonly [Name in keyof Data as string extends Name ? never : Name]?: Data[Name] | undefined;
};

/** The fields of a notification of this kind. */
export type SampleFields<K extends Kind> = K extends Kind ? Named<EventOf<K>['data']> : never;

export type SampleOptions<K extends Kind = Kind> = {
  readonly kind: K;
  /** The job's id (`job_sample`). */
  readonly job?: string | undefined;
  /** The progress that it reports, from 0 to 100 (50). A job that is completed is at 100. */
  readonly percent?: number | undefined;
  /** When the job ends, in milliseconds since the epoch (2026-01-15T10:35:00Z). */
  readonly endMs?: number | undefined;
  /** Fields of the notification in place of the sample's: `{ error_code: 'TIMEOUT' }`. */
  readonly fields?: SampleFields<K> | undefined;
  /** The same, unchecked: fields that the schemas do not name, and values that they do not allow. */
  readonly otherFields?: Readonly<Record<string, unknown>> | undefined;
};

export const SAMPLE_JOB = 'job_sample';
const JOB_DURATION_MS = 60_000;
/** When each sample job ends, unless told otherwise: the time in the examples of the documents. */
export const SAMPLE_END_MS = Date.parse('2026-01-15T10:35:00Z');

/** The body of a notification as the conversion service sends it, as JSON. The same options give the same text. */
export function sampleNotification<K extends Kind>(options: SampleOptions<K>): string {
  return JSON.stringify(sampleFields(options));
}

export function sampleFields<K extends Kind>(options: SampleOptions<K>): Record<string, unknown> {
  const { kind, job = SAMPLE_JOB, percent = 50, endMs = SAMPLE_END_MS, fields, otherFields } = options;
  const created = new Date(endMs - JOB_DURATION_MS).toISOString();
  const ended = new Date(endMs).toISOString();
  const ofKind = {
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
  if (!Object.hasOwn(ofKind, kind)) throw new TypeError(`kind is none of ${Object.keys(ofKind).join(', ')}`);
  return { job_id: job, ...ofKind[kind], ...fields, ...otherFields };
}
