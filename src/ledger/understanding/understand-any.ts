// Understands any text, by the zod schemas: what a body says, or in words why it cannot be understood. It goes over the text
// several times. Nearly all bodies need none of that: see understand-usual.ts.

import {
  canonicalJson,
  inspectStructure,
  type JsonObject,
  parseExactly,
  parseLoosely,
} from './exact-json.ts';
import { addressee, eventSchemas, isStatus, kindOf, reasonOf, type Status } from '../../event/index.ts';
import { sha256 } from '../../base/signing/sha256.ts';
import type { Drift } from './drift.ts';
import type { JobEvent } from './event.ts';
import { errorCodeOf, eventWithDrift, type Understanding } from './understanding.ts';

/** What a body of this text says. Pure, and total: no input makes it throw. */
export function understandAny(text: string): Understanding {
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
  return eventWithDrift(toEvent(status, known.data, exact), Object.keys(exact), (name) => exact[name]);
}

function toEvent(
  status: Status,
  known: JsonObject & { job_id: string; progress_percentage: number },
  all: JsonObject,
): JobEvent {
  const occurredAt = known[`${status}_at`];
  return {
    jobId: known.job_id,
    status,
    progress: status === 'processing' ? known.progress_percentage : null,
    occurredAt: typeof occurredAt === 'string' ? occurredAt : null,
    errorCode: errorCodeOf(known['error_code']),
    data: JSON.stringify(withNormalized(all, known)),
    contentHash: sha256(canonicalJson(all)),
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
