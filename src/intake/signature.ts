// Checks whether a body was signed by the source that it claims (service interface 6.3): HMAC-SHA256 over the raw bytes,
// compared in constant time. The time does not show which secret matched, or whether the source exists:
// every call computes and compares the same number of digests.

import { createSecretKey, randomBytes, timingSafeEqual } from 'node:crypto';
import type { AuthenticBody, ExpiringSecret } from '../ledger/index.ts';
import type { Secret } from '../base/signing/secret.ts';
import { hmacSha256 } from '../base/signing/sha256.ts';

/** The secrets that are valid now: an immutable snapshot, replaced as a whole when the sources change. */
export type KeyRing = {
  /** The names of all sources, for checks and metrics. */
  readonly names: readonly string[];
  /** The same number of secrets for any name, known or not: decoys that nothing matches fill it up. */
  readonly secretsOf: (source: string) => readonly Secret[];
  /** Of a source's real secrets; empty for a name that is no source. */
  readonly fingerprintsOf: (source: string) => readonly string[];
  /** Those with a time by which they should be used no more. */
  readonly expiring: readonly ExpiringSecret[];
  /** The real secrets of all sources. */
  readonly all: readonly { readonly source: string; readonly secret: Secret }[];
};

/** Only `verifySignature` makes one. */
export type Verified = {
  readonly body: AuthenticBody;
  readonly fingerprint: string;
  /** The secret should have been used no more. */
  readonly isOverdue: boolean;
};

const SIGNATURE = /^sha256=([0-9a-f]{64})$/;
const NO_SIGNATURE = Buffer.alloc(32);

export function createKeyRing(sources: ReadonlyMap<string, readonly Secret[]>): KeyRing {
  const width = Math.max(1, ...Array.from(sources.values(), (secrets) => secrets.length));
  const decoys = Array.from({ length: width }, createDecoy);
  const padded = new Map(
    Array.from(sources, ([name, secrets]) => [name, [...secrets, ...decoys.slice(secrets.length)]] as const),
  );
  const all = Array.from(sources, ([source, secrets]) =>
    secrets.map((secret) => ({ source, secret })),
  ).flat();
  return {
    names: [...sources.keys()],
    secretsOf: (source) => padded.get(source) ?? decoys,
    fingerprintsOf: (source) => sources.get(source)?.map((secret) => secret.fingerprint) ?? [],
    expiring: all.flatMap(({ source, secret: { fingerprint, untilMs } }) =>
      untilMs === undefined ? [] : [{ source, fingerprint, untilMs }],
    ),
    all,
  };
}

/** Whether `header` has the form of a signature. With any other, no body can be authentic. */
export function isSignature(header: string | undefined): boolean {
  return header !== undefined && SIGNATURE.test(header);
}

/** The digest that a header of the form of a signature claims. */
export function claimedDigest(header: string | undefined): Buffer | undefined {
  const hex = SIGNATURE.exec(header ?? '')?.[1];
  return hex === undefined ? undefined : Buffer.from(hex, 'hex');
}

/**
 * Checks `header`, the one value of `X-Service-Signature`, over the raw bytes of a body.
 * Repeated headers reach us joined by a comma and match no pattern, so they are refused.
 * @returns undefined when the signature is absent, of another form, or does not match.
 */
export function verifySignature(
  ring: KeyRing,
  source: string,
  header: string | undefined,
  body: Buffer,
): Verified | undefined {
  const claimed = claimedDigest(header);
  let matched: Secret | undefined;
  for (const secret of ring.secretsOf(source)) {
    const expected = hmacSha256(secret.key, body);
    // No early exit: a match in the first place must take as long as one in the last.
    if (timingSafeEqual(expected, claimed ?? NO_SIGNATURE)) matched = secret;
  }
  if (claimed === undefined || matched === undefined) return undefined;
  const { fingerprint, untilMs } = matched;
  return {
    body: body as AuthenticBody,
    fingerprint,
    isOverdue: untilMs !== undefined && Date.now() > untilMs,
  };
}

function createDecoy(): Secret {
  return { key: createSecretKey(randomBytes(32)), fingerprint: '' };
}
