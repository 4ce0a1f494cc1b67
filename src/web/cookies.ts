// The one cookie of a site: a random value that names a session in its store.

import type { Request, Response } from 'express';

export type CookieOptions = { readonly name: string; readonly path: string };

/** The value of the first cookie of this name (RFC 6265, 5.4: the one with the longest path). */
export function readCookie(request: Request, { name }: CookieOptions): string | undefined {
  const pairs = (request.headers.cookie ?? '').split(';').map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
}

/**
 * Gone with the browser; the session's own end stands in its store. Scripts cannot read it, and other sites' pages send it
 * only where somebody follows a link. `Secure` if the browser uses TLS.
 */
export function setCookie(response: Response, { name, path }: CookieOptions, value: string): void {
  response.cookie(name, value, attributes(response, path));
}

export function clearCookie(response: Response, { name, path }: CookieOptions): void {
  response.clearCookie(name, attributes(response, path));
}

const attributes = ({ req }: Response, path: string) =>
  ({ path, httpOnly: true, sameSite: 'lax', secure: req.secure }) as const;
