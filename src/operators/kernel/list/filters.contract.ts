// What a filter of a list is, and those that several lists have. All arrive as text; a value that passes can be handed to Postgres
// without an error.

import { z } from 'zod';
import { toUtc } from '../../../base/time/utc.ts';
import { documented, kind, outcome, publicationResult } from './fields.contract.ts';

export const PAGE_LIMIT_MAX = 200;
const PAGE_LIMIT_DEFAULT = 50;
/** A cursor holds a time, an id and a hash; a job id is at most 128 bytes, thrice that as JSON in base64url. */
const CURSOR_MAX_LENGTH = 1_024;

/** How people meet a filter: as a field of the console's form, and as an option of the command line. */
export type FilterForm = {
  /** Of the field. */
  readonly label: string;
  /** Without its dashes. Missing where commands set the filter themselves. */
  readonly option?: string;
  /** What the option takes, as its help calls it. Missing for a flag. */
  readonly takes?: string;
  /** The option's. Without it, the words that the filter takes. */
  readonly help?: string;
  /** What the API takes where it is not given, if that is not "any". */
  readonly unset?: string;
  /** People write it in a form of their own, such as `24h`, and commands convert it. */
  readonly converts?: 'time' | 'seconds';
};

export type Filter<
  Schema extends z.ZodType = z.ZodType,
  Form extends FilterForm = FilterForm,
> = z.ZodOptional<Schema> & { readonly form: Form };
/** The filters of a list by their names. A schema without a form does not compile. */
export type Filters = Readonly<Record<string, Filter>>;

/**
 * A filter of a list, declared once: the API checks it, and its document, the forms of the console and the options of the command
 * line are made of it. How it becomes SQL is in the noun's queries.ts (FilterTable).
 */
export function filter<Schema extends z.ZodType, const Form extends FilterForm>(
  schema: Schema,
  form: Form,
): Filter<Schema, Form> {
  const { description } = schema;
  const optional = schema.optional();
  // Of the parameter, too, where the document shows it.
  return Object.assign(description === undefined ? optional : optional.describe(description), { form });
}

/** A parameter of a query is always text; a field of a body may be of any type. */
const textOrFault = () =>
  z.string({ error: ({ input }) => (input === undefined ? 'must be given' : 'must be text') });

const bounded = (text: z.ZodString, maxLength: number) =>
  text
    .min(1, 'must not be empty')
    .max(maxLength, `must be at most ${maxLength} characters`)
    .refine((value) => !value.includes('\0') && value.isWellFormed(), 'must be well-formed text')
    .meta(documented({ pattern: String.raw`^[^\u0000]*$` }));

/** Text that Postgres can store: without NUL and lone surrogates. */
export const plain = (maxLength: number) => bounded(textOrFault(), maxLength);

/** The same, as it is pasted: the white space around it is removed first. */
export const pasted = (maxLength: number) => bounded(textOrFault().trim(), maxLength);

/** Combining marks and fillers alone show nothing either. */
const VISIBLE = /[^\p{C}\p{Z}\p{M}\p{Default_Ignorable_Code_Point}]/u;

/** Why somebody did something: text with at least one visible character, without the white space around it. */
export const note = plain(500)
  .trim()
  .refine((text) => VISIBLE.test(text), 'must have a visible character')
  .meta(documented({ pattern: String.raw`^[^\u0000]*[^\s\u0000][^\u0000]*$` }));

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

/** In the document. Times that the offset moves beyond these years are left to the message. */
export const TIME_FORM = String.raw`^(19[7-9]\d|[2-9]\d{3})-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$`;

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
  .overwrite((text) => toUtc(text) ?? text)
  .meta(documented({ pattern: TIME_FORM }));

export const sourceName = plain(63).describe('By its exact name.');
export const source = filter(sourceName, {
  label: 'Source',
  option: 'source',
  takes: 'NAME',
  help: 'only of this source',
});
export const jobId = plain(128);
/** As long as the service keeps a delivery's reason, or an entry's last error. */
export const REASON_MAX_LENGTH = 300;
export const exactReason = plain(REASON_MAX_LENGTH);
export const eventIdText = plain(256);
export const flag = z.enum(['true', 'false'], 'must be true or false').transform((text) => text === 'true');

export const range = {
  from: filter(time.describe('Not before.'), {
    label: 'From (UTC)',
    option: 'from',
    takes: 'TIME',
    converts: 'time',
    help: 'not before: 2026-01-31T12:00:00Z, 2026-01-31, or 15m, 24h, 7d ago',
  }),
  to: filter(time.describe('Before, and not at.'), {
    label: 'To (UTC)',
    option: 'to',
    takes: 'TIME',
    converts: 'time',
    help: 'before this time',
  }),
};
export const job = {
  job_id: filter(jobId, { label: 'Job', option: 'job', takes: 'ID', help: 'only of this job' }),
  job_id_prefix: filter(jobId.describe('What the job’s id begins with.'), {
    label: 'Job begins with',
    option: 'job-prefix',
    takes: 'TEXT',
    help: 'only of jobs whose id begins with TEXT',
  }),
};

/** Of what is counted or listed beside. */
export const kindFilter = filter(kind, {
  label: 'Kind',
  option: 'kind',
  takes: 'KIND',
  help: 'completed, failed or progress',
});
export const outcomeFilter = filter(outcome, { label: 'Outcome', option: 'outcome', takes: 'OUTCOME' });
export const resultFilter = filter(publicationResult, { label: 'Result', option: 'result', takes: 'RESULT' });
/** `schema`: of the statuses that the list has. */
export const statusFilter = <Schema extends z.ZodType>(schema: Schema) =>
  filter(schema, {
    label: 'Status as sent',
    option: 'status',
    takes: 'STATUS',
    help: 'as the sender wrote it: processing, completed, failed, …',
  });
/** `schema`: of the states that the list has. `more`: where there is more to say than its words. */
export const stateFilter = <Schema extends z.ZodType>(
  schema: Schema,
  more: Pick<FilterForm, 'help' | 'unset'> = {},
) => filter(schema, { label: 'State', option: 'state', takes: 'STATE', ...more });
export const errorCode = filter(plain(256), {
  label: 'Error code',
  option: 'error-code',
  takes: 'CODE',
  help: 'only failures with this code',
});
/** `schema`: `exactReason`, with what it is a reason of. */
export const reasonFilter = <Schema extends z.ZodType>(schema: Schema) =>
  filter(schema, {
    label: 'Reason',
    option: 'reason',
    takes: 'TEXT',
    help: 'only with this reason, word for word; in the outbox the last error',
  });

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
