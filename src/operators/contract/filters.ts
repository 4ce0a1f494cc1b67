// Parameters that several lists have. All arrive as text; a value that passes can be handed to Postgres without an error.

import { z } from 'zod';
import { toUtc } from '../../utc.ts';

export const PAGE_LIMIT_MAX = 200;
const PAGE_LIMIT_DEFAULT = 50;
/** A cursor holds a time, an id and a hash; a job id is at most 128 bytes, thrice that as JSON in base64url. */
const CURSOR_MAX_LENGTH = 1_024;

/** A parameter of a query is always text; a field of a body may be of any type. */
const textOrFault = () =>
  z.string({ error: ({ input }) => (input === undefined ? 'must be given' : 'must be text') });

const bounded = (text: z.ZodString, maxLength: number) =>
  text
    .min(1, 'must not be empty')
    .max(maxLength, `must be at most ${maxLength} characters`)
    .refine((value) => !value.includes('\0') && value.isWellFormed(), 'must be well-formed text');

/** Text that Postgres can store: without NUL and lone surrogates. */
export const plain = (maxLength: number) => bounded(textOrFault(), maxLength);

/** The same, as it is pasted: the white space around it is removed first. */
export const pasted = (maxLength: number) => bounded(textOrFault().trim(), maxLength);

/** Combining marks and fillers alone show nothing either. */
const VISIBLE = /[^\p{C}\p{Z}\p{M}\p{Default_Ignorable_Code_Point}]/u;

/** Why somebody did something: text with at least one visible character, without the white space around it. */
export const note = plain(500)
  .trim()
  .refine((text) => VISIBLE.test(text), 'must have a visible character');

/** A whole number that arrives as text. The document shows an integer. */
export function wholeNumber(min: number, max: number) {
  const fault = `must be a whole number from ${min} to ${max}`;
  return textOrFault()
    .regex(/^\d{1,9}$/, fault)
    .transform(Number)
    .refine((count) => count >= min && count <= max, { error: fault, abort: true })
    .meta({
      override: ({ jsonSchema }) => {
        Object.assign(jsonSchema, { type: 'integer', minimum: min, maximum: max });
        delete jsonSchema.pattern;
      },
    });
}

/**
 * RFC 3339 with any offset, converted to UTC: Postgres takes no offset beyond 15:59. It stays text, since a Date has no
 * microseconds. The years are checked after the conversion, which can change them.
 */
export const time = z.iso
  .datetime({
    offset: true,
    error: 'must be a time as in RFC 3339, 2026-01-15T10:30:00Z',
    abort: true,
  })
  .max(40, { error: 'must be at most 40 characters', abort: true })
  .refine((text) => /^(19[7-9]|[2-9]\d\d)/.test(toUtc(text) ?? ''), {
    error: 'must be from 1970 to 9999, in UTC',
    abort: true,
  })
  .overwrite((text) => toUtc(text) ?? text);

export const source = plain(63).describe('By its exact name.');
export const jobId = plain(128);
/** As long as the service keeps a delivery's reason, or an entry's last error. */
export const REASON_MAX_LENGTH = 300;
export const exactReason = plain(REASON_MAX_LENGTH);
export const eventIdText = plain(256);
export const flag = z.enum(['true', 'false'], 'must be true or false').transform((text) => text === 'true');

export const range = {
  from: time.optional().describe('Not before.'),
  to: time.optional().describe('Before, and not at.'),
};
export const job = {
  job_id: jobId.optional(),
  job_id_prefix: jobId.optional().describe('What the job’s id begins with.'),
};

/** Of an action that works page by page. */
export const orderCursor = z
  .string()
  .min(1)
  .max(CURSOR_MAX_LENGTH)
  .optional()
  .describe('`next_cursor` of the call before.');

export const paging = {
  limit: wholeNumber(1, PAGE_LIMIT_MAX).default(PAGE_LIMIT_DEFAULT),
  cursor: plain(CURSOR_MAX_LENGTH)
    .optional()
    .describe('`next_cursor` of the page before, with the same filters.'),
};
