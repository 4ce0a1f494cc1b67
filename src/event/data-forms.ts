// The forms of the fields of a job, as zod schemas, for each kind of event (service interface 6.2). By them deliveries are
// understood; the JSON Schemas, the types and the documents in contracts/ are made from them.

import { z } from 'zod';
import { toUtc } from '../base/time/utc.ts';
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

const jobId = identifier.describe('The job’s id: 1 to 128 bytes in UTF-8.');

/** Without them a delivery belongs to no job. */
export const addressee = z.object({
  job_id: jobId,
  status: statusText.describe('Tells the kind of the notification: processing, completed or failed.'),
});

const jobType = string.describe('What kind of conversion it is, in the service’s words.');
const createdAt = timestamp.describe('When the job was created.');
const progressAtEnd = percentage.describe('How much of the job was done at its end, in percent.');

/**
 * Zod schemas of the `data` of each kind of event (service interface 6.2). What they parse loses fields that they do not name: use
 * `.loose()` to keep these. Times are converted to UTC. The published JSON Schemas, the types for others and their
 * comments are made from these. A changed one is a new form: see contracts/README.md.
 */
export const eventSchemas = {
  completed: z.object({
    job_id: jobId,
    status: z.literal('completed').describe('Tells the kind.'),
    job_type: jobType,
    progress_percentage: progressAtEnd,
    cost_micros: integer.describe('The price, in millionths of the currency’s unit.'),
    cost_cents: integer.describe('The price, in hundredths of the currency’s unit.'),
    processing_time_seconds: integer.describe('How long the conversion took, in seconds.'),
    output_size_bytes: integer.describe('The size of the result, in bytes.'),
    input_format: string.describe('The format of the input file.'),
    output_format: string.describe('The format of the result.'),
    created_at: createdAt,
    completed_at: timestamp.describe('When the job was completed.'),
  }),
  failed: z.object({
    job_id: jobId,
    status: z.literal('failed').describe('Tells the kind.'),
    job_type: jobType,
    progress_percentage: progressAtEnd,
    error_message: string.describe('Why it failed, for people.'),
    error_code: string.describe('Why it failed, for programs.'),
    created_at: createdAt,
    failed_at: timestamp.describe('When the job failed.'),
  }),
  progress: z.object({
    job_id: jobId,
    status: z.literal('processing').describe('Tells the kind.'),
    progress_percentage: percentage.describe('How much of the job is done, in percent.'),
    // The only optional field: a job may not know its end yet.
    estimated_completion: timestamp
      .optional()
      .describe('When the job will probably end. Absent if that is not known.'),
  }),
} as const satisfies Record<Kind, z.ZodType>;
