// Understands an authentic body (service interface 2.1 and 6.2): which job, which kind of event, and its normalized
// fields, or why it cannot be understood. Never throws, and never alters what it passes on: unknown fields
// keep every digit, and a body that breaks the schema is kept whole (`quarantined`).

import { hash } from 'node:crypto';
import {
  canonicalJson,
  decodeUtf8,
  inspectStructure,
  type JsonObject,
  parseExactly,
  parseLoosely,
} from './exact-json.ts';
import {
  addressee,
  eventSchemas,
  isStatus,
  type Kind,
  kindOf,
  reasonOf,
  type Status,
} from '../event/index.ts';
import { typeOfJson } from '../json-type.ts';
import type { JobEvent } from './event.ts';
import type { Drift } from './drift.ts';

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
