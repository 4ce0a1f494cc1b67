// One exchange with a receiver: a signed POST and its answer, of which nothing but the status matters. Follows no
// redirect, and is over in time whatever the other side does.

import { errors, request } from 'undici';
import { version } from '../../version.ts';
import type { Addresses } from '../addresses/addresses.ts';
import type { SignedBody } from './chaos.ts';
import { SIGNATURE_HEADER } from './signature.ts';

export type Answer = {
  readonly httpStatus: number | null;
  /** Null where there was a whole answer in time, whatever its status. */
  readonly error: string | null;
  readonly durationMs: number;
};

/** Receivers have nothing to tell us. What is longer costs them the connection, not the acknowledgement. */
const ANSWER_MAX_BYTES = 64 * 1024;

/** Never rejects. `signal` cuts it short (`interrupted`). */
export async function post(options: {
  addresses: Pick<Addresses, 'fault' | 'dispatcher'>;
  url: string;
  content: SignedBody;
  /** For all of it: finding the address, connecting, sending, and the answer's last byte. */
  timeoutMs: number;
  signal: AbortSignal;
}): Promise<Answer> {
  const { addresses, url, content } = options;
  // The rules may be stricter than they were when the job was made.
  if (addresses.fault(url) !== undefined)
    return { httpStatus: null, error: 'address_refused', durationMs: 0 };
  const startedMs = performance.now();
  const clock = AbortSignal.timeout(options.timeoutMs);
  const signal = AbortSignal.any([clock, options.signal]);
  let httpStatus: number | null = null;
  let error: string | null = null;
  try {
    const response = await request(url, {
      dispatcher: addresses.dispatcher,
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'User-Agent': `tallyhook-sandbox/${version}`,
        [SIGNATURE_HEADER]: content.signature,
      },
      body: content.body,
      signal,
      // One clock for the whole exchange; these two start anew with every part of it.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    httpStatus = response.statusCode;
    await response.body.dump({ limit: ANSWER_MAX_BYTES, signal });
  } catch (fault) {
    if (clock.aborted) error = 'timeout';
    else error = options.signal.aborted ? 'interrupted' : reasonOf(fault);
  }
  return { httpStatus, error, durationMs: Math.round(performance.now() - startedMs) };
}

/** One word that a developer can act on. The text of an error may quote the address, and addresses hold tokens. */
function reasonOf(fault: unknown): string {
  if (fault instanceof errors.HTTPParserError) return 'not_http';
  const { code: given } = (fault ?? {}) as { code?: unknown };
  const code = typeof given === 'string' ? given : '';
  if (code === 'address_refused') return code;
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT') return 'timeout';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'dns';
  if (/TLS|SSL|CERT|SIGNATURE|^EPROTO$/.test(code)) return 'tls';
  return 'connection';
}
