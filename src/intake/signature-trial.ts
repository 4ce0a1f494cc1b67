// Tries the likely mistakes behind a signature of the right form that did not match, after the answer was sent. What is tried
// and when never depends on whether the claimed source exists, so it tells strangers nothing. A match is a hint for operators
// and nothing else: it makes no body authentic and no secret used.

import { timingSafeEqual } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { NO_MATCH, NO_SOURCE, NOT_TRIED, withOtherEnd } from '../base/signing/signature-cause.ts';
import type { Secret } from '../base/signing/secret.ts';
import { hmacSha256 } from '../base/signing/sha256.ts';
import { claimedDigest, type KeyRing } from './signature.ts';
import { UNKNOWN_SOURCE } from '../base/text/source-name.ts';

/** `signedBy`: another source, whose secret signed the body. The reason does not tell it, since not everybody may know. */
export type Cause = { readonly reason: string; readonly signedBy: string | null };

export type Trial = {
  /**
   * The cause, as far as it is found. Computes no digest in the present turn of the event loop. Never rejects.
   * @param source as it is recorded: `unknown` for any name that is no source
   */
  readonly find: (source: string, signature: string, body: Buffer | undefined) => Promise<Cause>;
};

/** In any second, of all sources together. So many bodies are held at most, too. */
const TRIALS_PER_SECOND = 2;
/** Larger bodies are rare, and each costs as many digests as there are secrets. */
export const TRIED_BODY_BYTES = 64 * 1024;
/** With the claimed source's secrets, 16 at most, it makes 256 digests: 16 MiB are hashed. Sources beyond are not tried. */
export const OTHER_SECRETS_MAX = 240;
/** 256 KiB are hashed in a turn at most: less than a millisecond. */
export const DIGESTS_PER_TURN = 4;

type Attempt = { readonly secret: Secret; readonly body: Buffer; readonly found: Partial<Cause> };

export function createTrial(options: {
  keyRing: () => KeyRing;
  /** Whether the process is under load. */
  isBusy: () => boolean;
  /** Monotonic milliseconds. */
  now: () => number;
  digest?: typeof hmacSha256;
}): Trial {
  const { keyRing, isBusy, now, digest = hmacSha256 } = options;
  const started: number[] = []; // the times of this second's trials
  let held = 0;
  let last: Promise<unknown> = Promise.resolve();

  function mayStart(): boolean {
    while (started[0] !== undefined && now() - started[0] >= 1_000) started.shift();
    if (started.length >= TRIALS_PER_SECOND || held >= TRIALS_PER_SECOND || isBusy()) return false;
    started.push(now());
    return true;
  }

  async function find(source: string, signature: string, body: Buffer | undefined): Promise<Cause> {
    const unfound = (reason: string) => ({
      reason: source === UNKNOWN_SOURCE ? NO_SOURCE : reason,
      signedBy: null,
    });
    const claimed = claimedDigest(signature);
    const isSmall = body !== undefined && body.length <= TRIED_BODY_BYTES;
    if (!isSmall || claimed === undefined || !mayStart()) return unfound(NOT_TRIED);
    held += 1;
    const trial = last.then(() => tryAll(attemptsOn(keyRing(), source, body), claimed, digest));
    last = trial.catch(() => {}); // its caller reports it
    try {
      // The same reason if another source's secret fits: those who may not know of it see no difference.
      return { ...unfound(NO_MATCH), ...(await trial) };
    } catch {
      return unfound(NOT_TRIED); // the refusal is recorded in any case
    } finally {
      held -= 1;
    }
  }

  return { find };
}

/** The number of attempts depends on how many sources and secrets are configured, and on nothing else. */
function attemptsOn(ring: KeyRing, source: string, body: Buffer): readonly Attempt[] {
  const own = withOtherEnd(body).flatMap((other) =>
    ring.secretsOf(source).map((secret) => ({ secret, body: other.body, found: { reason: other.cause } })),
  );
  // The claimed source's secrets are among them, without effect: without them the number of attempts would show that it exists.
  const others = ring.all.slice(0, OTHER_SECRETS_MAX).map((entry) => ({
    secret: entry.secret,
    body,
    // Its own may match if it was added since the answer: that is no other source's.
    found: entry.source === source ? {} : { signedBy: entry.source },
  }));
  return [...own, ...others];
}

/** The first attempt that matches. All are made all the same, a few in each turn of the event loop. */
async function tryAll(
  attempts: readonly Attempt[],
  claimed: Buffer,
  digest: typeof hmacSha256,
): Promise<Partial<Cause> | undefined> {
  let found: Partial<Cause> | undefined;
  for (const [index, attempt] of attempts.entries()) {
    if (index % DIGESTS_PER_TURN === 0) await nextTurn();
    if (timingSafeEqual(digest(attempt.secret.key, attempt.body), claimed)) found ??= attempt.found;
  }
  return found;
}
