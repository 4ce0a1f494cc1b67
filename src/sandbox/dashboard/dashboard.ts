// The account dashboard: pages for what users of the real service do in its dashboard (service interface 5 and 6.1). It is
// mounted before the API's gate, and the API goes on ignoring its cookie.

import { type ErrorRequestHandler, type Request, type RequestHandler, type Response, Router } from 'express';
import { describeError, UnavailableError, UsageError } from '../../base/errors.ts';
import { closeIfUnread } from '../../http/index.ts';
import { BASE_STYLE, createAssets, FormError, html, ICON, isForged, pageHeaders } from '../../web/index.ts';
import { ApiError } from '../api/errors.ts';
import { deliveryPages } from './delivery-pages.ts';
import { jobPages } from './job-pages.ts';
import { show, showOutside } from './layout.ts';
import { newJobPage } from './new-job-page.ts';
import { createOnce } from './once.ts';
import { overviewPage } from './overview-page.ts';
import { nothingHere, PageError } from './page-error.ts';
import { signInPages } from './sign-in-pages.ts';
import { requireSession } from './session-gate.ts';
import { DASHBOARD_PATH, type DashboardOptions, type Site } from './site.ts';
import { tokenPages } from './token-pages.ts';
import { webhookPages } from './webhook-pages.ts';

export function createDashboard(options: DashboardOptions): Router {
  const assets = createAssets(DASHBOARD_PATH, {
    'base.css': BASE_STYLE,
    'dashboard.css': new URL('dashboard.css', import.meta.url),
    'dashboard.js': new URL('dashboard.js', import.meta.url),
    'icon.svg': ICON,
  });
  const site: Site = { ...options, assets, once: createOnce() };
  const router = Router({ caseSensitive: true, strict: true });
  router.use(pageHeaders());
  router.use(refuseForged);
  router.use(assets.router);
  router.use(signInPages(site));
  router.use(requireSession(site));
  router.use(overviewPage(site), newJobPage(site), jobPages(site), deliveryPages(site));
  router.use(webhookPages(site), tokenPages(site));
  router.use(() => {
    throw nothingHere('page');
  });
  router.use(showError(site));
  return router;
}

const refuseForged: RequestHandler = (request, _response, next) => {
  // RFC 9112, 3.2: and without it we do not know our own origin.
  if (request.headers.host === undefined) {
    throw new PageError(400, 'The request has no Host header', 'HTTP/1.1 needs one.');
  }
  if (isForged(request)) {
    throw new PageError(
      403,
      'This request did not come from the dashboard',
      html`Nothing was changed. Open <a href="${DASHBOARD_PATH}">the dashboard</a> and use its own buttons.`,
    );
  }
  next();
};

function showError(site: Site): ErrorRequestHandler {
  return (error: unknown, request: Request, response: Response, next) => {
    if (response.headersSent) return next(error);
    closeIfUnread(request, response);
    const found = toPageError(error);
    if (found === undefined)
      site.log.error({ err: describeError(error) }, 'unexpected error of the dashboard');
    const { status, title, advice, headers } = found ?? INTERNAL;
    const page = { title, status, content: html`<p>${advice}</p>` };
    response.set(headers);
    if (response.locals['account'] === undefined) showOutside(site, response, page);
    else show(site, response, page);
  };
}

const INTERNAL = new PageError(500, 'Something went wrong on our side', 'The log of the sandbox says what.');

function toPageError(error: unknown): PageError | undefined {
  if (error instanceof PageError) return error;
  if (error instanceof FormError) return new PageError(error.status, error.message, 'Nothing was changed.');
  if (error instanceof UnavailableError) {
    return new PageError(
      503,
      'The sandbox has too much to do',
      `Nothing was changed: ${error.message}. Try again in some seconds.`,
    );
  }
  if (error instanceof ApiError) {
    const { status, message, headers } = error.answer;
    return new PageError(status, 'This cannot be done', `Nothing was changed: ${message}.`, headers);
  }
  if (error instanceof UsageError)
    return new PageError(409, 'This cannot be done', `Nothing was changed: ${error.message}.`);
  const { status } = error as { status?: unknown };
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return new PageError(status, 'The request could not be understood', 'Nothing was changed.');
  }
  return undefined;
}
