// Before each page but those of the sign-in: who looks at it.

import type { Request, RequestHandler, Response } from 'express';
import { peerAddress } from '../../http/index.ts';
import { clearCookie, type CookieOptions, html, readCookie, seeOther } from '../../web/index.ts';
import type { Limits } from '../accounts/limits.ts';
import { PageError } from './page-error.ts';
import { DASHBOARD_PATH, type Site } from './site.ts';

/** Cookies know no ports, so its name and path are the sandbox's own. */
export const COOKIE: CookieOptions = { name: 'tallyhook_sandbox', path: DASHBOARD_PATH };

export const SIGN_IN_PATH = `${DASHBOARD_PATH}/sign-in`;

export function requireSession({ sessions, limits }: Pick<Site, 'sessions' | 'limits'>): RequestHandler {
  return async (request, response, next) => {
    const cookie = readCookie(request, COOKIE);
    const account = cookie === undefined ? undefined : sessions.find(cookie);
    if (account !== undefined) {
      response.locals['account'] = account;
      return next();
    }
    if (cookie !== undefined) {
      await countGuess(limits, request);
      clearCookie(response, COOKIE);
    }
    if (request.method === 'POST') {
      throw new PageError(
        401,
        cookie === undefined ? 'You are not signed in' : 'Your session has ended',
        html`Nothing was changed. <a href="${SIGN_IN_PATH}">Sign in</a>, and do it again.`,
      );
    }
    seeOther(response, pathToSignIn(request, cookie !== undefined));
  };
}

/** As requests to the API without a valid token: they count for their IP address. @throws PageError */
export async function countGuess(limits: Pick<Limits, 'spendAddress'>, request: Request): Promise<void> {
  const { exceeded, resetS } = await limits.spendAddress(peerAddress(request.socket) ?? '');
  if (!exceeded) return;
  const waitS = Math.max(1, resetS - Math.floor(Date.now() / 1_000));
  throw new PageError(429, 'Too many attempts', `Try again in ${waitS} s.`, { 'Retry-After': String(waitS) });
}

/** Signs in once. `url`: of the dashboard. */
export function signInAddress(url: string, code: string): string {
  return `${url}/sign-in?code=${code}`;
}

/** Leads back to the page that was asked for. */
function pathToSignIn({ originalUrl }: Request, hasEnded: boolean): string {
  const query = new URLSearchParams({
    ...(originalUrl !== DASHBOARD_PATH && { next: originalUrl }),
    ...(hasEnded && { ended: '1' }),
  });
  return query.size === 0 ? SIGN_IN_PATH : `${SIGN_IN_PATH}?${query.toString()}`;
}

export function signedOut(response: Response): void {
  clearCookie(response, COOKIE);
}
