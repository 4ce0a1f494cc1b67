// The relay on this machine that commands send to: that of `npm start`, or the one that the environment describes.

import { type Env } from '../../config.ts';
import { withLocalRun } from '../../terminal/environment.ts';
import { signingSecretIfKnown } from './secret.ts';

export type LocalRelay = {
  readonly webhookUrl: string;
  /** It accepts what is signed with this, for the source `default`. */
  readonly secret: string;
};

const ANSWER_TIMEOUT_MS = 1_000;

export function webhookUrlOf(env: Env, source?: string): string {
  const base = `http://127.0.0.1:${env['PORT'] || 8080}/webhooks`;
  return source === undefined ? base : `${base}/${source}`;
}

/** Undefined if none answers, or its secret is not known here. */
export async function findLocalRelay(given: Env): Promise<LocalRelay | undefined> {
  const env = withLocalRun(given);
  const secret = signingSecretIfKnown(env);
  const webhookUrl = webhookUrlOf(env);
  return secret !== undefined && (await answers(webhookUrl)) ? { webhookUrl, secret } : undefined;
}

async function answers(webhookUrl: string): Promise<boolean> {
  try {
    const response = await fetch(new URL('/livez', webhookUrl), {
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}
