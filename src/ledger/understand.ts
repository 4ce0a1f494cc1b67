// Understands an authentic body (service interface 2.1 and 6.2): which job, which kind of event, and its normalized
// fields, or why it cannot be understood. Never throws, and never alters what it passes on: unknown fields
// keep every digit, and a body that breaks the schema is kept whole (`quarantined`).

import { hash } from 'node:crypto';
import { z } from 'zod';
import {
  canonicalJson,
  decodeUtf8,
  inspectStructure,
  type JsonObject,
  parseExactly,
  parseLoosely,
  typeOfJson,
} from './exact-json.ts';
import { isStatus, type JobEvent, type Kind, kindOf, type Status } from './event.ts';
import type { Drift } from './drift.ts';
import { mustBe, reasonOf } from './reasons.ts';
import { toUtc } from '../utc.ts';

declare const authentic: unique symbol;

/** Bytes whose signature matched, when they came or when they were recorded. Only they can become an event. */
export type AuthenticBody = Buffer & { readonly [authentic]: true };

/** `drift`: the fields or the status that our schemas do not know, if any. */
export type Understanding =
  | { readonly outcome: 'event'; readonly event: JobEvent; readonly drift?: readonly Drift[] }
  | {
      readonly outcome: 'quarantined';
      readonly jobId: string;
      readonly status: string;
      readonly reason: string;
      readonly drift?: readonly Drift[];
    }
  | { readonly outcome: 'malformed'; readonly reason: string; readonly drift?: never };

/** Unknown fields of one body that are counted: a body with nothing else must not cost more than another. */
const DRIFT_PER_BODY = 20;

/**
 * An error code is searched for as a whole, so it is kept whole or not at all. Real ones are short words. Nobody could type
 * control characters to search for them, and Postgres takes no NUL.
 */
const ERROR_CODE = /^\P{C}{1,256}$/u;

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
const addressee = z.object({ job_id: identifier, status: statusText });

/** The three kinds of event, with the fields of service interface 6.2. The published JSON Schemas are made from these. */
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

const knownFields: Readonly<Record<Kind, ReadonlySet<string>>> = {
  completed: new Set(Object.keys(eventSchemas.completed.shape)),
  failed: new Set(Object.keys(eventSchemas.failed.shape)),
  progress: new Set(Object.keys(eventSchemas.progress.shape)),
};

/** What the body says. Pure, and total: no input makes it throw. */
export function understand(body: AuthenticBody): Understanding {
  const text = decodeUtf8(body);
  if (text === undefined) return malformed('the body is not UTF-8');
  const parsed = parseLoosely(text);
  if (parsed === undefined) return malformed('the body is not JSON');
  if (!isObject(parsed.value)) return malformed('the body is not a JSON object');
  const structure = inspectStructure(text);

  for (const field of ['job_id', 'status']) {
    if (structure.ambiguous.has(field)) return malformed(`${field} occurs more than once`);
  }
  const named = addressee.safeParse(parsed.value);
  if (!named.success) return malformed(reasonOf(named.error));
  const { job_id: id, status } = named.data;

  const quarantined = (reason: string) => ({
    outcome: 'quarantined' as const,
    jobId: id,
    status,
    reason,
  });
  if (structure.tooDeep) return quarantined('the body is nested too deeply');
  if (structure.repeatsKey) return quarantined('a key occurs twice in one object');
  if (!isStatus(status)) {
    const drift: Drift = { kind: 'status', status, name: status, valueType: 'string' };
    return { ...quarantined('unknown status'), drift: [drift] };
  }

  // Doubles nearly always hold all numbers exactly. Only otherwise the text is parsed again, which is slow.
  const exact = structure.plainNumbers ? parsed.value : (parseExactly(text) as JsonObject);
  const known = eventSchemas[kindOf(status)].safeParse(exact);
  if (!known.success) return quarantined(reasonOf(known.error));
  const event = toEvent(status, known.data, exact);
  const drift = unknownFields(status, exact);
  return drift === undefined ? { outcome: 'event', event } : { outcome: 'event', event, drift };
}

/** Undefined for nearly all bodies; then it costs one look-up a field. */
function unknownFields(status: Status, all: JsonObject): readonly Drift[] | undefined {
  const known = knownFields[kindOf(status)];
  let found: Drift[] | undefined;
  for (const name in all) {
    if (known.has(name)) continue;
    found ??= [];
    if (found.length === DRIFT_PER_BODY) break;
    found.push({ kind: 'field', status, name, valueType: typeOfJson(all[name]) });
  }
  return found;
}

function toEvent(
  status: Status,
  known: JsonObject & { job_id: string; progress_percentage: number },
  all: JsonObject,
): JobEvent {
  const occurredAt = known[`${status}_at`];
  const errorCode = status === 'failed' ? known['error_code'] : undefined;
  return {
    jobId: known.job_id,
    status,
    progress: status === 'processing' ? known.progress_percentage : null,
    occurredAt: typeof occurredAt === 'string' ? occurredAt : null,
    errorCode: typeof errorCode === 'string' && ERROR_CODE.test(errorCode) ? errorCode : null,
    data: JSON.stringify(withNormalized(all, known)),
    contentHash: hash('sha256', canonicalJson(all), 'buffer'),
  };
}

function withNormalized(all: JsonObject, known: JsonObject): JsonObject {
  const normalized = Object.entries(known);
  if (normalized.every(([key, value]) => all[key] === value)) return all;
  // From entries, since a spread would take a key `__proto__` for the prototype.
  return Object.fromEntries([...Object.entries(all), ...normalized]);
}

const malformed = (reason: string): Understanding => ({ outcome: 'malformed', reason });

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
