// What all Express apps of ours share: exact paths, the sender as trusted proxies name it, and errors in our form.

import express, { type Express } from 'express';
import type { Logger } from 'pino';
import { errorHandler, notFound } from './errors.ts';
import type { TrustedProxies } from './proxies.ts';

/** Exact paths: `/WEBHOOKS` and `/webhooks/` are other addresses, so a typo is seen at once. */
export function createExactApp(): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  return app;
}

/** The same behind trusted proxies, whose `X-Forwarded-…` headers are believed. */
export function createAppBehind({ isTrusted }: TrustedProxies): Express {
  const app = createExactApp();
  app.set('trust proxy', isTrusted);
  return app;
}

/** Adds what comes after all routes: 404 and the error handler. */
export function finishApp(app: Express, log: Logger): Express {
  app.use(notFound);
  app.use(errorHandler(log));
  return app;
}
