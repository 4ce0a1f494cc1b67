// The intake's face, which the world may reach. An Express app with exact routes; the server around it sets the time-outs.

import type { Express } from 'express';
import {
  createAppBehind,
  finishApp,
  NOSNIFF,
  type StandingHeaders,
  livez,
  type Readiness,
  readyz,
  type TrustedProxies,
} from '../http/index.ts';
import { type DeliveryOptions, deliveryHandler, wrongMethodHandler } from './delivery.ts';

export type IntakeOptions = DeliveryOptions & {
  readonly readiness: () => Promise<Readiness>;
  readonly proxies: TrustedProxies;
};

export function createIntakeApp(options: IntakeOptions): Express {
  const app = createAppBehind(options.proxies);
  const paths = ['/webhooks', '/webhooks/:source'];
  app.post(paths, deliveryHandler(options));
  app.all(paths, wrongMethodHandler(options));
  app.use((_request, response, next) => {
    response.set(NOSNIFF);
    next();
  });
  app.get('/livez', livez);
  app.get('/readyz', readyz(options.readiness));
  return finishApp(app, options.log);
}

/** For what is answered before the app has a request. */
export const intakeHeaders: StandingHeaders = async () => NOSNIFF;
