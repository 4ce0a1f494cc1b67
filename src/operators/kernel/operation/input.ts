// Reads a request's path, query and body (`readRequest`), and checks what was asked by the operation's schemas (`checkInput`).
// Whatever cannot be read, or is not in a schema, is an ApiError that names the parameter and never repeats its value.

import type { Request } from 'express';
import { getRawBody } from 'raw-body';
import type { z } from 'zod';
import { decodeUtf8, inspectStructure, parseLoosely } from '../../../ledger/index.ts';
import { clip, faultsOf, InputError, inPlainWords } from './input-faults.ts';
import { ApiError, type Operation } from './operation.ts';

/** Fits the longest list of event ids that a replay takes: a thousand, of ordinary length. */
export const BODY_LIMIT_BYTES = 64 * 1024;

/** Far more than any operation has. */
const MAX_PARAMETERS = 64;

const JSON_TYPE = /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;

const KEY_FORM = /^[\x20-\x7e]{1,255}$/;

/** What is asked of an operation, not checked yet. */
export type Asked = {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  /** Of an action; undefined where none was sent. */
  readonly body?: unknown;
  /** The idempotency key of an action. */
  readonly key?: string | undefined;
};

export type Input = {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  /** The body before its schema added defaults. Two requests with equal ones are the same to an Idempotency-Key. */
  readonly sent: unknown;
};

/** @throws ApiError 400, 413 or 415 */
export async function readRequest(operation: Operation, request: Request): Promise<Asked> {
  const asked = { query: readQuery(request.originalUrl), params: request.params };
  // Before the body is read: a request with a wrong parameter is answered at once.
  checkParameters(operation, asked);
  if (operation.method === 'get') return asked;
  const key = readIdempotencyKey(request);
  return { ...asked, key, body: await readBody(request, operation.body !== undefined) };
}

/** @throws ApiError 400 */
export function checkInput(operation: Operation, asked: Asked): Input {
  const { params, query } = checkParameters(operation, asked);
  if (operation.method === 'get') return { params, query, body: undefined, sent: undefined };
  const sent = checkText(asked.body);
  return { params, query, body: check(operation.body, sent ?? {}), sent };
}

function checkParameters(operation: Operation, { params = {}, query = {} }: Asked) {
  return {
    query: check(operation.query, checkText(query)),
    params: check(operation.params, checkText(params)),
  };
}

const invalid = (message: string) => new ApiError(400, 'invalid_request', message);

/** Without a schema no value is allowed. */
function check(schema: z.ZodObject | undefined, value: unknown): unknown {
  if (schema === undefined) {
    if (Object.keys(value as object).length > 0) throw invalid(`unknown parameter: ${keysOf(value)}`);
    return undefined;
  }
  const { data, error } = schema.safeParse(value, { error: inPlainWords });
  if (error !== undefined) throw new InputError(faultsOf(error));
  return data;
}

const keysOf = (value: unknown) => clip(Object.keys(value as object).join(', '));

/** Not by a library: those ignore bad percent-encoding, and make lists of parameters that are given twice. */
function readQuery(url: string): Record<string, string> {
  const start = url.indexOf('?');
  const pairs =
    start === -1
      ? []
      : url
          .slice(start + 1)
          .split('&')
          .filter(Boolean);
  if (pairs.length > MAX_PARAMETERS) throw invalid(`more than ${MAX_PARAMETERS} parameters`);
  const query = new Map<string, string>();
  for (const pair of pairs) {
    const [name = '', ...rest] = pair.split('=');
    const key = decode(name);
    if (query.has(key)) throw invalid(`${clip(key)}: must be given once`);
    query.set(key, decode(rest.join('=')));
  }
  return Object.fromEntries(query);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw invalid('the address is not percent-encoded UTF-8');
  }
}

/** @throws ApiError 400 */
function readIdempotencyKey(request: Request): string | undefined {
  const key = request.get('idempotency-key');
  if (key === undefined || KEY_FORM.test(key)) return key;
  throw invalid('Idempotency-Key: must be 1 to 255 printable characters of ASCII');
}

async function readBody(request: Request, isWanted: boolean): Promise<unknown> {
  const { 'content-type': type, 'content-encoding': encoding = 'identity' } = request.headers;
  const { 'content-length': length, 'transfer-encoding': transfer } = request.headers;
  const isThere = transfer !== undefined || Number(length ?? 0) > 0;
  if (!isThere) {
    if (isWanted) throw invalid('a body of JSON is needed');
    return undefined;
  }
  if (!JSON_TYPE.test(type ?? '')) {
    throw new ApiError(415, 'unsupported_media_type', 'the Content-Type must be application/json');
  }
  if (encoding.toLowerCase() !== 'identity') {
    throw new ApiError(415, 'unsupported_media_type', 'the body must be sent without Content-Encoding');
  }
  const value = parse(await readBytes(request));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid('the body must be a JSON object');
  }
  return value;
}

async function readBytes(request: Request): Promise<Buffer> {
  try {
    return await getRawBody(request, {
      length: request.headers['content-length'] ?? null,
      limit: BODY_LIMIT_BYTES,
    });
  } catch (error) {
    if ((error as { status?: unknown }).status !== 413) throw invalid('the body did not arrive whole');
    throw new ApiError(413, 'payload_too_large', `the body is larger than ${BODY_LIMIT_BYTES} bytes`);
  }
}

function parse(body: Buffer): unknown {
  const text = decodeUtf8(body);
  const parsed = text === undefined ? undefined : parseLoosely(text);
  if (text === undefined || parsed === undefined) throw invalid('the body is not JSON in UTF-8');
  if (inspectStructure(text).repeatsKey) throw invalid('the body has a member twice');
  return parsed.value;
}

/** Postgres' text allows neither NUL nor lone surrogates. Iterative, since the depth of a body has no limit. */
function checkText<T>(value: T): T {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next === 'string') {
      if (next.includes('\0') || !next.isWellFormed()) {
        throw invalid('a value holds a NUL or an unpaired surrogate');
      }
    } else if (typeof next === 'object' && next !== null) {
      for (const [key, inner] of Object.entries(next)) open.push(key, inner);
    }
  }
  return value;
}
