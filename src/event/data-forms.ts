// The forms of the fields of a job, as zod schemas, for each kind of event (service interface 6.2). By them deliveries are
// understood; the JSON Schemas, the types and the documents in contracts/ are made from them.

import { z } from 'zod';
import { toUtc } from '../utc.ts';
import type { Kind } from './id.ts';
import { mustBe } from './reasons.ts';

/** A job id: printable and without white space, since ids, keys and logs contain it. */
const anId = mustBe('a string of 1 to 128 bytes, without white space and invisible characters', 'string');
const identifier = z
  .string({ error: anId })
  .regex(/^[^\p{C}\p{Z}]+$/u, { error: anId })
  .max(128, { error: anId })
  .refine((id) => Buffer.byteLength(id) <= 128, { error: anId });

/** Any printable text: operators see an unknown status as it came, also with white space. */
const aStatus = mustBe('a string of 1 to 128 visible characters', 'string');
const statusText = z
  .string({ error: aStatus })
  .regex(/^\P{C}+$/u, { error: aStatus })
  .max(128, { error: aStatus });

const string = z.string({ error: mustBe('a string', 'string') });
/** A double holds no integer beyond these exactly. */
const integer = z.int({
  error: mustBe(`a whole number from ${Number.MIN_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}`, 'number'),
});
const aPercentage = mustBe('a whole number from 0 to 100', 'number');
const percentage = z
  .int({ error: aPercentage })
  .min(0, { error: aPercentage })
  .max(100, { error: aPercentage });
const timestamp = z.iso
  .datetime({
    offset: true,
    error: mustBe('a date and time with a time zone, as in 2026-01-31T12:00:00Z', 'string'),
  })
  .refine((text) => toUtc(text) !== undefined, 'must be a date between the years 1 and 9999')
  .overwrite((text) => toUtc(text) ?? text);

/** Without them a delivery belongs to no job. */
export const addressee = z.object({ job_id: identifier, status: statusText });

/**
 * Zod schemas of the `data` of each kind of event. What they parse loses fields that they do not name: use `.loose()` to keep
 * these. Times are converted to UTC. The published JSON Schemas are made from these (service interface 6.2).
 */
export const eventSchemas = {
  completed: z.object({
    job_id: identifier,
    status: z.literal('completed'),
    job_type: string,
    progress_percentage: percentage,
    cost_micros: integer,
    cost_cents: integer,
    processing_time_seconds: integer,
    output_size_bytes: integer,
    input_format: string,
    output_format: string,
    created_at: timestamp,
    completed_at: timestamp,
  }),
  failed: z.object({
    job_id: identifier,
    status: z.literal('failed'),
    job_type: string,
    progress_percentage: percentage,
    error_message: string,
    error_code: string,
    created_at: timestamp,
    failed_at: timestamp,
  }),
  progress: z.object({
    job_id: identifier,
    status: z.literal('processing'),
    progress_percentage: percentage,
    // The only optional field: a job may not know its end yet.
    estimated_completion: timestamp.optional(),
  }),
} as const satisfies Record<Kind, z.ZodType>;
