// Whether a secret is still used that should be gone: secrets may have a time in SOURCES_FILE by which their senders use another.

import type { SourceLook } from './looks.ts';

/** A secret that should be used no more after `untilMs`, which is since the epoch. */
export type ExpiringSecret = {
  readonly source: string;
  readonly fingerprint: string;
  readonly untilMs: number;
};

/** The sources that were signed for by such a secret after its time, and how many seconds ago last. `nowMs`: since the epoch. */
export function overdueSecrets(
  looks: readonly Pick<SourceLook, 'source' | 'secrets'>[],
  expiring: readonly ExpiringSecret[],
  nowMs: number,
): { readonly source: string; readonly lastUsedS: number }[] {
  return looks.flatMap(({ source, secrets }) => {
    const used = secrets
      .filter(({ fingerprint, lastMatchedS }) =>
        expiring.some(
          (secret) =>
            secret.source === source &&
            secret.fingerprint === fingerprint &&
            nowMs - lastMatchedS * 1_000 > secret.untilMs,
        ),
      )
      .map(({ lastMatchedS }) => lastMatchedS);
    return used.length === 0 ? [] : [{ source, lastUsedS: Math.min(...used) }];
  });
}
