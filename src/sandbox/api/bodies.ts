// A request's body as JSON, within its limits. Whatever cannot be read is told as what it is.

import type { Request } from 'express';
import { getRawBody } from 'raw-body';
import { parseJson } from '../../json.ts';
import { badRequest, type Refusal, tooLarge, unsupported } from './errors.ts';

/** Six fields, three of them addresses of 2,048 characters: ten times of what is needed. */
export const BODY_LIMIT_BYTES = 64 * 1024;

const JSON_TYPE = /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;

export async function readJson(request: Request): Promise<{ value: unknown } | { refusal: Refusal }> {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers;
  if (!JSON_TYPE.test(type)) return { refusal: unsupported('the Content-Type must be application/json') };
  if (encoding.toLowerCase() !== 'identity') {
    return { refusal: unsupported('the body must be sent without Content-Encoding') };
  }
  const body = await readBytes(request);
  return Buffer.isBuffer(body) ? parse(body) : { refusal: body };
}

async function readBytes(request: Request): Promise<Buffer | Refusal> {
  const length = request.headers['content-length'] ?? null;
  try {
    return await getRawBody(request, { length, limit: BODY_LIMIT_BYTES });
  } catch (error) {
    const isTooLarge = (error as { status?: unknown }).status === 413;
    return isTooLarge ? tooLarge(BODY_LIMIT_BYTES) : badRequest('the body did not arrive whole');
  }
}

function parse(body: Buffer): { value: unknown } | { refusal: Refusal } {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
    return { value: parseJson(text) };
  } catch {
    return { refusal: badRequest('the body is not JSON in UTF-8') };
  }
}
