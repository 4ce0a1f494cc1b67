// The same forms as in data-forms.ts, checked by hand for the values that nearly all jobs have: some ten times faster than zod. It
// says yes or nothing: only the zod schemas can say what is wrong with a value.

import { z } from 'zod';
import { toUtc } from '../base/time/utc.ts';
import type { eventSchemas } from './data-forms.ts';
import type { Status } from './id.ts';

/** What the usual body's fields have: no fractions, no large numbers, no objects or arrays. */
export type PlainValue = string | number | boolean | null;

type Check = (value: PlainValue | undefined) => boolean;
type Checks<Kind extends keyof typeof eventSchemas> = Readonly<
  Record<keyof (typeof eventSchemas)[Kind]['shape'], Check>
>;

const USUAL_JOB_ID = /^[!-~]{1,128}$/;
const DATE_AND_TIME = z.core.regexes.datetime({ offset: true });

const isJobId: Check = (value) => typeof value === 'string' && USUAL_JOB_ID.test(value);
const isStatus =
  (status: Status): Check =>
  (value) =>
    value === status;
const isText: Check = (value) => typeof value === 'string';
const isInteger: Check = (value) => typeof value === 'number';
const isPercentage: Check = (value) => typeof value === 'number' && value >= 0 && value <= 100;
/** Already as it is published. */
const isUtc: Check = (value) =>
  typeof value === 'string' && DATE_AND_TIME.test(value) && toUtc(value) === value;
const isUtcOrAbsent: Check = (value) => value === undefined || isUtc(value);

const checks = {
  completed: {
    job_id: isJobId,
    status: isStatus('completed'),
    job_type: isText,
    progress_percentage: isPercentage,
    cost_micros: isInteger,
    cost_cents: isInteger,
    processing_time_seconds: isInteger,
    output_size_bytes: isInteger,
    input_format: isText,
    output_format: isText,
    created_at: isUtc,
    completed_at: isUtc,
  } satisfies Checks<'completed'>,
  failed: {
    job_id: isJobId,
    status: isStatus('failed'),
    job_type: isText,
    progress_percentage: isPercentage,
    error_message: isText,
    error_code: isText,
    created_at: isUtc,
    failed_at: isUtc,
  } satisfies Checks<'failed'>,
  processing: {
    job_id: isJobId,
    status: isStatus('processing'),
    progress_percentage: isPercentage,
    estimated_completion: isUtcOrAbsent,
  } satisfies Checks<'progress'>,
};

const checksOf: Readonly<Record<Status, readonly (readonly [name: string, Check])[]>> = {
  completed: Object.entries(checks.completed),
  failed: Object.entries(checks.failed),
  processing: Object.entries(checks.processing),
};

/**
 * True: the zod schema of this status accepts these fields, and changes none. False: only the schema can tell.
 * @param fields all of a body. Numbers are plain integers, which a double holds exactly
 */
export function isUsual(status: Status, fields: ReadonlyMap<string, PlainValue>): boolean {
  return checksOf[status].every(([name, check]) => check(fields.get(name)));
}
