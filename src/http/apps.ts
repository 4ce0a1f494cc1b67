// The two faces: the intake, which the world may reach, and the operators' side, which it may not. Express
// apps with exact routes; the servers around them set the time-outs.

import type { Express } from 'express';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { createExactApp } from '../http-ground.ts';
import { type DeliveryOptions, deliveryHandler, wrongMethodHandler } from './delivery.ts';
import { errorHandler, notFound } from './errors.ts';
import { livez, type Readiness, readyz } from './health.ts';

export function createIntakeApp(options: DeliveryOptions & { readiness: () => Promise<Readiness> }): Express {
  const app = createExactApp();
  const paths = ['/webhooks', '/webhooks/:source'];
  app.post(paths, deliveryHandler(options));
  app.all(paths, wrongMethodHandler(options));
  app.get('/livez', livez);
  app.get('/readyz', readyz(options.readiness));
  return finishApp(app, options.log);
}

export function createOperatorApp(options: {
  readiness: () => Promise<Readiness>;
  registry: Registry;
  log: Logger;
}): Express {
  const { registry } = options;
  const app = createExactApp();
  app.get('/livez', livez);
  app.get('/readyz', readyz(options.readiness));
  app.get('/metrics', async (_request, response) => {
    response.type(registry.contentType).send(await registry.metrics());
  });
  return finishApp(app, options.log);
}

function finishApp(app: Express, log: Logger): Express {
  app.use(notFound);
  app.use(errorHandler(log));
  return app;
}
