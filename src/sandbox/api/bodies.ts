// Reads a request's body as JSON, within a limit. Each fault has an error answer of its own.

import type { Request } from 'express';
import { getRawBody } from 'raw-body';
import { parseJson } from '../../json.ts';
import { badRequest, type ErrorAnswer, tooLarge, unsupported } from './errors.ts';

/** Ten times the largest valid body, which has three URLs of 2,048 characters. */
export const BODY_LIMIT_BYTES = 64 * 1024;

const JSON_TYPE = /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;

export async function readJson(request: Request): Promise<{ value: unknown } | { error: ErrorAnswer }> {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers;
  if (!JSON_TYPE.test(type)) return { error: unsupported('the Content-Type must be application/json') };
  if (encoding.toLowerCase() !== 'identity') {
    return { error: unsupported('the body must be sent without Content-Encoding') };
  }
  const body = await readBytes(request);
  return Buffer.isBuffer(body) ? parse(body) : { error: body };
}

async function readBytes(request: Request): Promise<Buffer | ErrorAnswer> {
  const length = request.headers['content-length'] ?? null;
  try {
    return await getRawBody(request, { length, limit: BODY_LIMIT_BYTES });
  } catch (error) {
    const isTooLarge = (error as { status?: unknown }).status === 413;
    return isTooLarge ? tooLarge(BODY_LIMIT_BYTES) : badRequest('the body did not arrive whole');
  }
}

function parse(body: Buffer): { value: unknown } | { error: ErrorAnswer } {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
    return { value: parseJson(text) };
  } catch {
    return { error: badRequest('the body is not JSON in UTF-8') };
  }
}
