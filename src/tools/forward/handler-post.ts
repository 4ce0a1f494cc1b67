// Posts a body to the handler that somebody develops, signed as the sender signs, and reads the beginning of its answer. Follows
// no redirect, and always ends in time.

import { request } from 'undici';
import { UsageError } from '../../base/errors.ts';
import { readUpTo } from '../../base/net/byte-stream.ts';
import { version } from '../../base/version.ts';
import { sign } from '../../signature/index.ts';
import { reasonOf } from '../../terminal/no-answer.ts';

export type HandlerAnswer =
  | {
      readonly result: 'ok' | 'failed';
      readonly status: number;
      readonly durationMs: number;
      readonly text: string;
    }
  | { readonly result: 'no_answer'; readonly reason: string };

/** The sender's own limit (service interface 6.1). */
const TIMEOUT_MS = 10_000;
/** Of an answer; the rest is not read. */
const ANSWER_MAX_BYTES = 4_096;

/** @throws UsageError */
export function handlerUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isUsable = url !== undefined && ['http:', 'https:'].includes(url.protocol) && url.username === '';
  if (isUsable) return url;
  throw new UsageError(
    'forward takes an http or https URL without a user, such as http://127.0.0.1:3000/webhooks',
  );
}

/** Rejects only when `signal` is aborted. */
export async function postToHandler(
  url: URL,
  content: { body: Buffer; contentType: string | undefined; secret: string; deliveryId: string },
  signal: AbortSignal,
): Promise<HandlerAnswer> {
  const { body, contentType, secret, deliveryId } = content;
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const startedMs = performance.now();
  try {
    const response = await request(url, {
      method: 'POST',
      headers: {
        ...(contentType !== undefined && { 'Content-Type': contentType }),
        'User-Agent': `tallyhook/${version}`,
        'X-Request-Id': deliveryId,
        'X-Service-Signature': sign(body, secret),
      },
      body,
      reset: true, // a handler in development is restarted often: a kept connection would be dead
      signal: AbortSignal.any([timeout, signal]),
    });
    const { statusCode: status } = response;
    const text = (await readUpTo(ANSWER_MAX_BYTES, response.body)).toString('utf8');
    const durationMs = Math.round(performance.now() - startedMs);
    return { result: status >= 200 && status < 300 ? 'ok' : 'failed', status, durationMs, text };
  } catch (error) {
    signal.throwIfAborted();
    const reason = timeout.aborted ? `no whole answer within ${TIMEOUT_MS / 1_000} s` : reasonOf(error, url);
    return { result: 'no_answer', reason };
  }
}
