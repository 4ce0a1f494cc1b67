// The Express app of the operators' port: health, the console, metrics, and the API behind the gate. The port must not be
// reachable from the internet. The server around the app (src/http) sets the time-outs.

import type { Express, RequestHandler } from 'express';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import {
  type Connections,
  createAppBehind,
  finishApp,
  type LimitedLines,
  livez,
  onlyGet,
  type Readiness,
  readyz,
  type StandingHeaders,
  type TrustedProxies,
} from '../http/index.ts';
import { ANSWER_HEADERS, answerHeaders } from '../web/index.ts';
import type { Authenticator } from './kernel/access/authenticator.ts';
import type { Limits } from './kernel/access/limits.ts';
import { CONSOLE } from './kernel/console/console.ts';
import { createGate, needsTokenForMetrics, rateHeaders } from './kernel/operation/gate.ts';

export type OperatorOptions = {
  readonly readiness: () => Promise<Readiness>;
  readonly registry: Registry;
  readonly authenticator: Authenticator;
  readonly limits: Limits;
  readonly connections: Pick<Connections, 'trust'>;
  readonly strangerLines: LimitedLines;
  /** The API's documentation, mounted before the API. */
  readonly docs: RequestHandler;
  /** Mounted below /api/v1. */
  readonly api: RequestHandler;
  /** Mounted below /console. */
  readonly console: RequestHandler;
  readonly isMetricsOpen: boolean;
  readonly proxies: TrustedProxies;
  /** Monotonic. */
  readonly now: () => number;
  readonly log: Logger;
};

export function createOperatorApp(options: OperatorOptions): Express {
  const { registry, isMetricsOpen } = options;
  const app = createAppBehind(options.proxies);
  app.use(answerHeaders());
  app.get('/livez', livez);
  app.get('/readyz', readyz(options.readiness));
  app.all(['/livez', '/readyz'], onlyGet);
  // Before the gate, since it has one of its own: sessions instead of tokens, and pages instead of JSON.
  app.get('/', (_request, response) => response.redirect(CONSOLE));
  app.use(CONSOLE, options.console);
  app.use(createGate(options));
  app.all('/metrics', needsTokenForMetrics({ isOpen: isMetricsOpen }));
  app.get('/metrics', async (_request, response) => {
    response.type(registry.contentType).send(await registry.metrics());
  });
  app.all('/metrics', onlyGet);
  app.use('/api/v1', options.docs, options.api);
  return finishApp(app, options.log);
}

/**
 * The headers of answers that the server sends without the app, to requests that it cannot parse: security headers, and the
 * rate limit of the address, against which such a request counts.
 */
export function operatorHeaders({ limits }: Pick<OperatorOptions, 'limits'>): StandingHeaders {
  return async (address) => ({ ...ANSWER_HEADERS, ...rateHeaders(await limits.spendAddress(address)) });
}
