// An Express app as each face begins and ends it: exact paths, the sender as trusted proxies name it, and errors in our form.

import express, { type Express } from 'express';
import type { Logger } from 'pino';
import { errorHandler, notFound } from './errors.ts';
import type { TrustedProxies } from './proxies.ts';

/** Exact paths: `/WEBHOOKS` and `/webhooks/` are other addresses, and a typo should not half work. */
export function createExactApp(): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  return app;
}

/** The same behind proxies: what they say of the sender is believed. */
export function createAppBehind({ isTrusted }: TrustedProxies): Express {
  const app = createExactApp();
  app.set('trust proxy', isTrusted);
  return app;
}

/** Behind all routes: what is not there, and what went wrong. */
export function finishApp(app: Express, log: Logger): Express {
  app.use(notFound);
  app.use(errorHandler(log));
  return app;
}
