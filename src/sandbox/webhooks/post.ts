// One HTTP exchange with a receiver: a signed POST and its response, of which only the status matters. Follows no
// redirect and always ends in time.

import { errors, request } from 'undici';
import { type Addresses, USER_AGENT } from '../addresses/addresses.ts';
import type { SignedBody } from './chaos.ts';
import { SIGNATURE_HEADER } from './signature.ts';

export type Answer = {
  readonly httpStatus: number | null;
  /** Null if there was a complete response in time, whatever its status. */
  readonly error: string | null;
  readonly durationMs: number;
};

/** A response body is discarded. After this many bytes its connection is closed; the status counts all the same. */
const RESPONSE_MAX_BYTES = 64 * 1024;

/** Never rejects. Aborting `signal` ends it with the error `interrupted`. */
export async function post(options: {
  addresses: Pick<Addresses, 'fault' | 'dispatcher'>;
  url: string;
  content: SignedBody;
  /** For the whole exchange, from the DNS lookup to the last byte of the response. */
  timeoutMs: number;
  signal: AbortSignal;
}): Promise<Answer> {
  const { addresses, url, content } = options;
  // Checked again: the rules may be stricter than when the job was created.
  if (addresses.fault(url) !== undefined)
    return { httpStatus: null, error: 'address_refused', durationMs: 0 };
  const startedMs = performance.now();
  const timeout = AbortSignal.timeout(options.timeoutMs);
  const signal = AbortSignal.any([timeout, options.signal]);
  let httpStatus: number | null = null;
  let error: string | null = null;
  try {
    const response = await request(url, {
      dispatcher: addresses.dispatcher,
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'User-Agent': USER_AGENT,
        [SIGNATURE_HEADER]: content.signature,
      },
      body: content.body,
      signal,
    });
    httpStatus = response.statusCode;
    await response.body.dump({ limit: RESPONSE_MAX_BYTES, signal });
  } catch (fault) {
    if (timeout.aborted) error = 'timeout';
    else error = options.signal.aborted ? 'interrupted' : reasonOf(fault);
  }
  return { httpStatus, error, durationMs: Math.round(performance.now() - startedMs) };
}

/** One word for the developer. The error's own text could contain the URL, and URLs can contain tokens. */
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
