// What the API accepts. Unknown fields are errors, so that a misspelled field is noticed. All errors are reported together,
// each with its field.

import { z } from 'zod';
import type { Addresses } from '../addresses/addresses.ts';
import { FORMAT_NAMES } from '../engine/formats.ts';
import type { JobOrder, JobStatus } from '../jobs/job.ts';
import { ApiError, type Detail, invalid } from './errors.ts';

export const PAGE_LIMIT_MAX = 100;
const PAGE_LIMIT_DEFAULT = 20;
/** Longer than any id or cursor of ours. */
const REFERENCE_MAX_LENGTH = 200;

/** Enough for a person. A body can consist of nothing but unknown fields. */
const DETAILS_MAX = 20;
const SHOWN_NAME_LENGTH = 64;

const STATUSES = ['processing', 'completed', 'failed'] as const satisfies readonly JobStatus[];

type Issue = { readonly input?: unknown };
const wrong =
  (text: string) =>
  ({ input }: Issue) =>
    input === undefined ? 'is required' : text;

export function orderSchema(addresses: Pick<Addresses, 'fault'>) {
  const address = z.string({ error: wrong('must be a string') }).superRefine((url, context) => {
    const fault = url.isWellFormed() ? addresses.fault(url) : 'must be well-formed Unicode';
    if (fault !== undefined) context.addIssue({ code: 'custom', message: fault });
  });
  const format = z.enum(FORMAT_NAMES, { error: wrong(`must be one of ${FORMAT_NAMES.join(', ')}`) });
  return z.strictObject(
    {
      job_type: z.literal('video', { error: wrong('must be "video"') }),
      input_url: address,
      output_url: address,
      input_format: format,
      output_format: format,
      webhook_url: address.nullish().transform((url) => url ?? null),
    },
    { error: (issue) => (issue.code === 'invalid_type' ? 'must be a JSON object' : undefined) },
  ) satisfies z.ZodType<JobOrder>;
}

/** A parameter that is given twice is an array. */
const parameter = z.string({ error: 'must be given once' });

const limit = parameter
  .regex(/^\d{1,3}$/, `must be a whole number from 1 to ${PAGE_LIMIT_MAX}`)
  .transform(Number)
  .refine(
    (count) => count >= 1 && count <= PAGE_LIMIT_MAX,
    `must be a whole number from 1 to ${PAGE_LIMIT_MAX}`,
  )
  .default(PAGE_LIMIT_DEFAULT);

const reference = parameter.max(REFERENCE_MAX_LENGTH, 'is too long');

export const jobsQuery = z.strictObject({
  status: z
    .enum(STATUSES, {
      error: ({ input }) =>
        Array.isArray(input) ? 'must be given once' : `must be one of ${STATUSES.join(', ')}`,
    })
    .optional(),
  limit,
  cursor: reference.optional(),
});

export const deliveriesQuery = z.strictObject({
  job_id: reference.optional(),
  limit,
  cursor: reference.optional(),
});

/** @throws ApiError with all faults. */
export function validate<T>(schema: z.ZodType<T>, input: unknown): T {
  const { success, data, error } = schema.safeParse(input);
  if (success) return data;
  throw new ApiError(invalid(error.issues.flatMap((issue) => detailsOf(issue)).slice(0, DETAILS_MAX)));
}

function detailsOf(issue: z.core.$ZodIssue): Detail[] {
  if (issue.code !== 'unrecognized_keys')
    return [{ field: issue.path.join('.') || 'body', message: issue.message }];
  return issue.keys.map((key) => ({ field: key.slice(0, SHOWN_NAME_LENGTH), message: 'is not known' }));
}
