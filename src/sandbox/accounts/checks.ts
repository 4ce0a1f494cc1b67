// What the settings of an account and its tokens may be. The commands and the dashboard check by these. `field` is the name
// under which a person gave the value.

import { randomBytes } from 'node:crypto';
import { UsageError } from '../../base/errors.ts';
import { SEEN_ONLY } from '../../base/text/invisible-characters.ts';
import { urlFault } from '../addresses/rule.ts';
import { WEBHOOK_TIMEOUT_MS } from '../webhooks/deliverer.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;
const NAME_MAX_LENGTH = 100;
const SECRET_BYTES = 32;

/** The ranges of an account's numbers, both ends included. */
export const ACCOUNT_RANGES = {
  maxAttempts: { min: 1, max: 20 },
  retryFirstMs: { min: 1, max: DAY_MS },
  retryFactor: { min: 1, max: 10 },
  retryMaxMs: { min: 1, max: DAY_MS },
  // A receiver has 10 s (service interface 6.1). Less time shows how it bears the retries of a slow answer.
  timeoutMs: { min: 100, max: WEBHOOK_TIMEOUT_MS },
} as const;

/** For accounts and tokens. @throws UsageError */
export function checkName(field: string, name: string): string {
  if (name.length > 0 && name.length <= NAME_MAX_LENGTH && SEEN_ONLY.test(name)) return name;
  throw new UsageError(`${field} takes 1 to ${NAME_MAX_LENGTH} printable characters`);
}

/** Checked again at each webhook, by the rules of the sandbox that sends it. @throws UsageError */
export function checkWebhookUrl(field: string, url: string): string {
  const fault = urlFault(url, { allowLocal: true });
  if (fault !== undefined) throw new UsageError(`${field} ${fault}`);
  return url;
}

const TIME = /^(\d{4}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/;

/** A time to come, in UTC. A date alone is its beginning. @throws UsageError */
export function checkExpiry(field: string, given: string, nowMs: number): string {
  const [, day = ''] = TIME.exec(given) ?? [];
  const ms = day === '' ? Number.NaN : Date.parse(given);
  // Date takes the 31st of February for the 3rd of March.
  if (Number.isNaN(ms) || !new Date(day).toISOString().startsWith(day))
    throw new UsageError(`${field} takes a time in ISO 8601, such as 2027-01-31T12:00:00Z`);
  if (ms <= nowMs) throw new UsageError(`${field} takes a time that is still to come`);
  return new Date(ms).toISOString();
}

export function newSigningSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}
