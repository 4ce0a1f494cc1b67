// The routes of the API: those of service interface 4, and the list of webhooks that the real service shows in its
// dashboard. The sandbox's own dashboard is mounted beside them.

import type { Express, Request, RequestHandler, Router } from 'express';
import { createExactApp } from '../../http/index.ts';
import type { Logger } from '../../base/log/log.ts';
import type { Accounts } from '../accounts/accounts.ts';
import type { Limits } from '../accounts/limits.ts';
import { DASHBOARD_PATH } from '../dashboard/site.ts';
import type { Engine } from '../engine/engine.ts';
import {
  DELIVERIES_PATH,
  type DeliveryRoutesOptions,
  listDeliveriesRoute,
  readDeliveryRoute,
  redeliverRoute,
} from './delivery-routes.ts';
import { callerOf, createGate, needs } from './gate.ts';
import {
  createJobRoute,
  type JobRoutesOptions,
  JOBS_PATH,
  listJobsRoute,
  readJobRoute,
} from './job-routes.ts';
import { errorHandler, methodNotAllowed, notFound } from './errors.ts';

export type ApiOptions = JobRoutesOptions &
  DeliveryRoutesOptions & {
    readonly accounts: Pick<Accounts, 'identify'>;
    readonly limits: Limits;
    readonly engine: Pick<Engine, 'kind' | 'version'>;
    readonly dashboard: Router;
    readonly log: Logger;
  };

export function createApi(options: ApiOptions): Express {
  const { log } = options;
  const app = createExactApp();

  app.use(logRequests(log));
  // Before the gate: it has sessions of its own.
  app.use(DASHBOARD_PATH, options.dashboard);
  app.use(createGate(options));

  app.post(JOBS_PATH, needs('jobs:write'), createJobRoute(options));
  app.get(JOBS_PATH, needs('jobs:read'), listJobsRoute(options));
  app.all(JOBS_PATH, methodNotAllowed('GET, HEAD, POST'));
  app.get(`${JOBS_PATH}/:job_id`, needs('jobs:read'), readJobRoute(options));
  app.all(`${JOBS_PATH}/:job_id`, methodNotAllowed('GET, HEAD'));

  app.get('/v1/me', meRoute(options));
  app.all('/v1/me', methodNotAllowed('GET, HEAD'));

  app.get(DELIVERIES_PATH, needs('webhooks:read'), listDeliveriesRoute(options));
  app.all(DELIVERIES_PATH, methodNotAllowed('GET, HEAD'));
  app.get(`${DELIVERIES_PATH}/:id`, needs('webhooks:read'), readDeliveryRoute(options));
  app.all(`${DELIVERIES_PATH}/:id`, methodNotAllowed('GET, HEAD'));
  app.post(`${DELIVERIES_PATH}/:id/redeliver`, needs('webhooks:write'), redeliverRoute(options));
  app.all(`${DELIVERIES_PATH}/:id/redeliver`, methodNotAllowed('POST'));

  app.use(notFound);
  app.use(errorHandler(log));
  return app;
}

/** For every valid token, whatever its scopes, so that its holder can find out what it is. */
function meRoute({ tiers, engine }: ApiOptions): RequestHandler {
  return (_request, response) => {
    const { account, token } = callerOf(response);
    const { requestsPerHour, burstPerMinute } = tiers[account.tier];
    response.json({
      account_id: account.id,
      name: account.name,
      tier: account.tier,
      environment: token.environment,
      token: {
        name: token.name,
        scopes: token.scopes,
        expires_at: token.expiresAt,
        last_used_at: token.lastUsedAt,
      },
      rate_limit: { requests_per_hour: requestsPerHour, burst_per_minute: burstPerMinute },
      engine: { kind: engine.kind, version: engine.version },
      sandbox: true,
    });
  };
}

function routeOf({ baseUrl, route }: Request): string | undefined {
  const path = (route as { path?: string } | undefined)?.path;
  return path === undefined ? undefined : `${baseUrl}${path}`;
}

/** Logs one line per request. Not its path but that of the route, since a path can contain a secret by mistake. */
function logRequests(log: Logger): RequestHandler {
  return (request, response, next) => {
    const startedMs = performance.now();
    response.once('close', () => {
      const caller = response.locals['caller'] as ReturnType<typeof callerOf> | undefined;
      log.info(
        {
          method: request.method,
          route: routeOf(request),
          status: response.headersSent ? response.statusCode : undefined, // the client closed the connection before
          error: response.locals['error'] as string | undefined,
          ms: Math.round((performance.now() - startedMs) * 10) / 10,
          account: caller?.account.id,
          token: caller?.token.id,
        },
        'request',
      );
    });
    next();
  };
}
