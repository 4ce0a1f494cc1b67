// Requests that a page of another site made a browser send. Browsers say where a request comes from in Sec-Fetch-Site; over
// plain http by an address they leave it out, and for a form name the page's origin in Origin. Cookies know no ports, so
// another service on the same host is another site as well.

import type { Request } from 'express';
import { ownOrigins } from '../http/index.ts';

const READS: readonly string[] = ['GET', 'HEAD'];

/**
 * Whether the request must be refused. A change needs proof that a page of ours sent it. A read is refused if a page of
 * another site embeds or fetches it; a link that somebody follows is let in.
 */
export function isForged(request: Request): boolean {
  return READS.includes(request.method) ? isForeignRead(request) : !isOwnChange(request);
}

function isForeignRead({ headers }: Request): boolean {
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none') return false;
  return headers['sec-fetch-mode'] !== 'navigate' || headers['sec-fetch-dest'] !== 'document';
}

function isOwnChange(request: Request): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (site !== undefined) return site === 'same-origin';
  return origin !== undefined && ownOrigins(request).includes(origin.toLowerCase());
}
