// What all our Express apps share: exact paths, the sender's address behind trusted proxies, and our error format.

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

/** The same behind trusted proxies: their `X-Forwarded-…` headers are used. */
export function createAppBehind({ isTrusted }: TrustedProxies): Express {
  const app = createExactApp();
  app.set('trust proxy', isTrusted);
  return app;
}

/** Adds 404 and the error handler, which come after all routes. */
export function finishApp(app: Express, log: Logger): Express {
  app.use(notFound);
  app.use(errorHandler(log));
  return app;
}
