// Requests that no honest client makes: a token in the address, bad percent-encoding, a request from a page of another
// origin.

import type { Request } from 'express';
import { ownOrigins } from '../../../http/index.ts';
import { looksLikeToken } from '../access/token-value.ts';
import { ApiError } from './operation.ts';

const TOKEN_IN_ADDRESS = new ApiError(
  400,
  'token_in_address',
  'an address ends up in logs: send the token in the Authorization header, and revoke this one',
);
const BAD_ENCODING = new ApiError(400, 'invalid_request', 'the address is not percent-encoded UTF-8');
const CROSS_ORIGIN = new ApiError(403, 'cross_origin', 'requests from pages of other origins are refused');

/** Parameters by which other APIs take tokens. */
const TOKEN_PARAMETERS = new Set(['token', 'access_token', 'api_token', 'api_key', 'authorization']);

export function faultOf(request: Request): ApiError | undefined {
  let address: string;
  try {
    address = decodeURIComponent(request.originalUrl.replaceAll('+', ' '));
  } catch {
    return looksLikeToken(request.originalUrl) ? TOKEN_IN_ADDRESS : BAD_ENCODING;
  }
  if (looksLikeToken(address) || hasTokenParameter(request.originalUrl)) return TOKEN_IN_ADDRESS;
  return isCrossOrigin(request) ? CROSS_ORIGIN : undefined;
}

function hasTokenParameter(url: string): boolean {
  const [, query = ''] = url.split(/\?(.*)/s);
  return query
    .split('&')
    .some((pair) => TOKEN_PARAMETERS.has(decodeURIComponent(pair.split('=', 1)[0] ?? '').toLowerCase()));
}

/** A browser names the origin of the page that sends a request. Other clients send neither header. */
function isCrossOrigin(request: Request): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  if (origin === undefined) return false;
  return !ownOrigins(request).includes(origin.toLowerCase());
}
