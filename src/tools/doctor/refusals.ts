// The checks of what the service refuses by rule: other methods, encoded bodies, and bodies above the limit.

import { gzipSync } from 'node:zlib';
import { DELIVERY_ERRORS } from '../../base/delivery-answers.ts';
import { count } from '../../terminal/readable.ts';
import { explain, isMalformed, isOwn, isUnauthorized } from './explain.ts';
import { type Finding, failed, ok, warning } from './finding.ts';
import { type Answer, type Endpoint, post, probe } from './probe.ts';
import { malformedBody } from './signature.ts';

export async function checkMethod(endpoint: Endpoint): Promise<Finding> {
  const answer = await probe(endpoint, { method: 'GET' });
  const isRefused = isOwn(answer, DELIVERY_ERRORS.wrongMethod);
  if (isRefused && answer.kind === 'answer' && answer.headers.allow === 'POST') {
    return ok('method', 'GET is refused with 405, and Allow names POST');
  }
  const fault = isRefused
    ? {
        found: 'GET is refused with 405, but without the header Allow: POST',
        mend: 'let the proxy pass it on',
      }
    : explain(answer, 'GET');
  return isClientError(answer) ? warning('method', fault) : failed('method', fault);
}

const isClientError = (answer: Answer) =>
  answer.kind === 'answer' && answer.status >= 400 && answer.status < 500;

export async function checkEncoding(endpoint: Endpoint, secret: string): Promise<Finding> {
  const headers = { 'Content-Encoding': 'gzip' };
  const answer = await post(endpoint, gzipSync(malformedBody()), { secret, headers });
  if (answer.kind === 'answer' && answer.status === DELIVERY_ERRORS.encoded.httpStatus) {
    return ok('encoding', 'a compressed body is refused with 415');
  }
  if (isUnauthorized(answer)) {
    return warning('encoding', {
      found: 'a compressed body was refused with 401: it was changed on its way',
      mend: 'the proxy in front unpacks bodies: let it pass them on as they are',
    });
  }
  return failed('encoding', explain(answer, 'a compressed body'));
}

/** The default of BODY_LIMIT_BYTES. */
export const USUAL_LIMIT_BYTES = 256 * 1024;
/**
 * Of the time that a sender waits. The service answers as soon as it knows the length; a body that is under way then could end
 * the connection before the answer is read.
 */
const HOLD_SHARE = 0.1;

/** What is above the limit is refused with 413; what is just within it reaches the service. */
export async function checkSize(endpoint: Endpoint, secret: string): Promise<Finding> {
  const above = paddedBody(USUAL_LIMIT_BYTES + 1);
  const refusal = await post(endpoint, above, { secret, holdMs: endpoint.timeoutMs * HOLD_SHARE });
  const limit = limitIn(refusal) ?? USUAL_LIMIT_BYTES;
  const isRefused = refusal.kind === 'answer' && refusal.status === DELIVERY_ERRORS.tooLarge.httpStatus;
  if (!isRefused && !isMalformed(refusal)) {
    return failed('size', explain(refusal, `a body of ${count(above.length)} bytes`));
  }
  const within = await post(endpoint, paddedBody(limit), { secret });
  if (!isMalformed(within)) {
    const { found, mend } = explain(within, `a body of ${count(limit)} bytes, which is within the limit,`);
    return failed('size', { found, mend });
  }
  const details = { limit_bytes: limit };
  return isRefused
    ? ok('size', `bodies of up to ${count(limit)} bytes are taken, larger ones are refused with 413`, details)
    : ok('size', `bodies of ${count(above.length)} bytes are taken: BODY_LIMIT_BYTES is above its default`);
}

/** As Tallyhook says it. */
function limitIn(answer: Answer): number | undefined {
  if (answer.kind === 'none' || !isOwn(answer, DELIVERY_ERRORS.tooLarge)) return undefined;
  const digits = /larger than (\d{1,8}) bytes/.exec(String(answer.fields['message']))?.[1];
  const limit = Number(digits);
  return limit > 0 && limit <= USUAL_LIMIT_BYTES ? limit : undefined;
}

/** An authentic body that is no notification, of so many bytes. */
function paddedBody(bytes: number): Buffer {
  const body = Buffer.alloc(bytes, ' ');
  malformedBody().copy(body);
  return body;
}
