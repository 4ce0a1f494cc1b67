// The envelope of an event: a CloudEvents 1.0 document in structured mode, with the extensions `recordedtime`, `sequence` and
// `late`. Its attributes are made here and checked here.

import { z } from 'zod';
import { SOURCE_NAME } from '../base/text/source-name.ts';
import type { Kind } from './id.ts';

/** The content type of each message. */
export const CLOUD_EVENT_TYPE = 'application/cloudevents+json';

/**
 * Raised only when the form of `data` changes in a way that could break a subscriber. The old version must then be published
 * beside the new one. No code does this yet, so `npm run contracts -- --release` refuses another number.
 */
const SCHEMA_VERSION = 1;

/** Digits of 2^63-1. Padded to these, sequences sort as text in the order of numbers, as CloudEvents' extension requires. */
export const SEQUENCE_DIGITS = 19;

/** The `$id` of the JSON Schema of `data`, in contracts/events/. */
export const dataSchema = (kind: Kind): string => `urn:tallyhook:schema:${eventType(kind)}:${SCHEMA_VERSION}`;

/** The CloudEvent's `type`: `conversion.job.completed`. */
export const eventType = <K extends Kind>(kind: K): `conversion.job.${K}` => `conversion.job.${kind}`;

/** The CloudEvent's `source`: `/sources/team-a`. */
export const eventSource = (source: string): string => `/sources/${source}`;

/** `job.<kind>.<source>`: a subscriber binds `job.completed.*`, `job.*.team-a` or `job.#`. */
export function routingKey(prefix: string, kind: string, source: string): string {
  return `${prefix}.${kind}.${source}`;
}

const utc = z.iso.datetime();

/** Ids and keys are AMQP short strings, too. */
const SHORT_STRING_MAX = 255;

/**
 * The zod schema of an event as a CloudEvent. It is open: attributes that are added later pass through, and so do new types and
 * versions of the data. `data` has a schema for each kind.
 */
export const envelope = z.looseObject({
  specversion: z.literal('1.0').describe('The version of CloudEvents.'),
  id: z
    .string()
    .min(1)
    .max(SHORT_STRING_MAX)
    .describe(
      'The readable dedup key: <source>:<job id>:<status>, for progress also :<percentage>. The same on every copy. Deduplicate by it.',
    ),
  type: z
    .string()
    .regex(/^conversion\.job\.[a-z_]+$/)
    .describe('The kind of event. Ignore events of a type that you do not know.'),
  source: z
    .string()
    .regex(new RegExp(`^/sources/${SOURCE_NAME.source.slice(1)}`))
    .describe('Who sent it: /sources/<source>.'),
  subject: z.string().min(1).max(128).describe('The job’s id.'),
  time: utc.describe(
    'When it happened: completed_at or failed_at. Progress has no such field: there it equals recordedtime.',
  ),
  recordedtime: utc.describe('When Tallyhook accepted it.'),
  sequence: z
    .string()
    .regex(new RegExp(`^[0-9]{${SEQUENCE_DIGITS}}$`))
    .describe('Sorts as text in the order of acceptance. For one job this order is exact. It has gaps.'),
  late: z
    .literal(true)
    .optional()
    .describe(
      'Only on progress that arrived after the job’s end, or with a lower percentage than an earlier one.',
    ),
  datacontenttype: z.literal('application/json').describe('The content type of data.'),
  dataschema: z
    .string()
    .regex(/^urn:tallyhook:schema:conversion\.job\.[a-z_]+:[0-9]+$/)
    .describe('The $id of the JSON Schema of data. A change that could break you raises its number.'),
  data: z.looseObject({}).describe('The fields of the job. Ignore those that you do not know.'),
});
