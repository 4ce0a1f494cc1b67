// Understands the body that nearly every delivery has: a flat JSON object with the fields of its status, each in its usual form.
// One pass reads it, checks it, and makes its data and its canonical form. It returns undefined for any other body: whatever it
// returns is exactly what understand-any.ts would return.

import { isStatus, isUsual } from '../../event/index.ts';
import { sha256 } from '../../base/signing/sha256.ts';
import { type Member, readFlat, writeFlat } from './flat-json.ts';
import { errorCodeOf, eventWithDrift, type Understanding } from './understanding.ts';

/** @returns undefined for a body that is not as usual, whatever is the matter with it. */
export function understandUsual(text: string): Understanding | undefined {
  const members = readFlat(text);
  if (members === undefined) return undefined;
  const fields = new Map(members.map(({ key, value }) => [key, value]));
  const isRepeated = fields.size < members.length;
  const status = fields.get('status');
  if (isRepeated || typeof status !== 'string' || !isStatus(status) || !isUsual(status, fields))
    return undefined;
  const event = {
    jobId: fields.get('job_id') as string,
    status,
    progress: status === 'processing' ? (fields.get('progress_percentage') as number) : null,
    occurredAt: status === 'processing' ? null : (fields.get(`${status}_at`) as string),
    errorCode: status === 'failed' ? errorCodeOf(fields.get('error_code')) : null,
    data: writeFlat(members),
    contentHash: sha256(writeFlat(members.toSorted(byKey))),
  };
  return eventWithDrift(event, fields.keys(), (name) => fields.get(name));
}

/** The order of the canonical form: by UTF-16 code units, as a sort of texts has it. No two keys are equal. */
const byKey = (one: Member, other: Member) => (one.key < other.key ? -1 : 1);
