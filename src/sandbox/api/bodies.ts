// Reads a request's body as JSON, within a limit.

import type { Request } from 'express';
import { getRawBody } from 'raw-body';
import { parseJson } from '../../base/json/json.ts';
import { ApiError, badRequest, tooLarge, unsupported } from './errors.ts';

/** Ten times the largest valid body, which has three URLs of 2,048 characters. */
export const BODY_LIMIT_BYTES = 64 * 1024;

const JSON_TYPE = /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;

/** @throws ApiError, another one for each fault. */
export async function readJson(request: Request): Promise<unknown> {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers;
  if (!JSON_TYPE.test(type)) throw new ApiError(unsupported('the Content-Type must be application/json'));
  if (encoding.toLowerCase() !== 'identity') {
    throw new ApiError(unsupported('the body must be sent without Content-Encoding'));
  }
  const body = await readBytes(request);
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body));
  } catch (cause) {
    throw new ApiError(badRequest('the body is not JSON in UTF-8'), { cause });
  }
}

async function readBytes(request: Request): Promise<Buffer> {
  const length = request.headers['content-length'] ?? null;
  try {
    return await getRawBody(request, { length, limit: BODY_LIMIT_BYTES });
  } catch (cause) {
    const isTooLarge = (cause as { status?: unknown }).status === 413;
    const answer = isTooLarge ? tooLarge(BODY_LIMIT_BYTES) : badRequest('the body did not arrive whole');
    throw new ApiError(answer, { cause });
  }
}
