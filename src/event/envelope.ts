// The envelope of an event: a CloudEvents 1.0 document in structured mode, with the extensions `recordedtime`, `sequence` and
// `late`. Its attributes are made here and checked here.

import { z } from 'zod';
import { SOURCE_NAME } from '../source-name.ts';
import { type Kind, KINDS } from './id.ts';

/** The content type of each message. */
export const CLOUD_EVENT_TYPE = 'application/cloudevents+json';

/** Raised only when the form of `data` changes; the new version is then published beside the old one. */
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

const text = z.string().min(1);
const utc = z.iso.datetime();

/**
 * The zod schema of an event as a CloudEvent. It is open: attributes that are added later pass through. Of `data` it says only that
 * it is an object; each kind has a schema for that.
 */
export const envelope = z.looseObject({
  specversion: z.literal('1.0'),
  id: text,
  type: z.enum(KINDS.map(eventType)),
  source: z.string().regex(new RegExp(`^/sources/${SOURCE_NAME.source.slice(1)}`)),
  subject: text,
  time: utc,
  recordedtime: utc,
  sequence: z.string().regex(new RegExp(`^\\d{${SEQUENCE_DIGITS}}$`)),
  late: z.literal(true).optional(),
  datacontenttype: z.literal('application/json'),
  dataschema: text,
  data: z.looseObject({}),
});
