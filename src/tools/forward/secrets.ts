// With which secret `tallyhook forward` signs a delivery: that of --secret-file, or the one that `send` uses for the delivery's
// source.

import { UsageError } from '../../base/errors.ts';
import { DEFAULT_SOURCE } from '../../base/text/source-name.ts';
import type { Env } from '../../config.ts';
import { withLocalRun } from '../../terminal/environment.ts';
import { readNamedFile } from '../../terminal/named-file.ts';
import { signingSecret, signingSecretIfKnown } from '../send/secret.ts';

export type SigningSecret = {
  readonly secret: string;
  /** The source that it belongs to, if that is not the delivery's: no secret of the delivery's source is known here. */
  readonly signedAs?: string;
};

export type ForwardSecrets = {
  readonly secretOf: (source: string) => SigningSecret;
  /** Where the secrets come from, for people. */
  readonly origin: string;
};

/**
 * `source`: the only one that is forwarded, if there is only one. Without it, the secret of `default` signs the deliveries of
 * sources that are not known here.
 * @throws UsageError
 */
export function readSecrets(
  given: Env,
  file: string | undefined,
  source: string | undefined,
): ForwardSecrets {
  if (file !== undefined) {
    const secret = String(readNamedFile('--secret-file', file)).trim();
    if (secret === '') throw new UsageError('--secret-file is empty');
    return { secretOf: () => ({ secret }), origin: 'the secret of --secret-file' };
  }
  const env = withLocalRun(given);
  const fallback = source ?? DEFAULT_SOURCE;
  const secret = signingSecret(env, fallback);
  return {
    // Read each time: a secret that is changed in its file counts from then on.
    secretOf: (own) => {
      const found = signingSecretIfKnown(env, own);
      if (found !== undefined) return { secret: found };
      return own === fallback ? { secret } : { secret, signedAs: fallback };
    },
    origin:
      source === undefined
        ? 'the secret of each delivery\'s source that "send" uses'
        : `the secret of the source "${source}" that "send" uses`,
  };
}
