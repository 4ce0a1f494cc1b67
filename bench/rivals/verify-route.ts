// A bare Express route that reads the body and verifies its signature, and nothing else: the least that a receiver on Express
// costs.

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import express, { type RequestHandler } from 'express';
import { getRawBody } from 'raw-body';
import { connectToBenchmark } from '../control.ts';

const BODY_LIMIT_BYTES = 262_144;
const { SECRET = '' } = process.env;
const { tell } = await connectToBenchmark();

const app = express();
app.disable('x-powered-by');
app.disable('etag');
app.post('/webhooks', verify());

function verify(): RequestHandler {
  return async (request, response) => {
    const body = await getRawBody(request, {
      length: request.get('content-length') ?? null,
      limit: BODY_LIMIT_BYTES,
    });
    const expected = Buffer.from(`sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`);
    const claimed = Buffer.from(request.get('x-service-signature') ?? '');
    const isAuthentic = claimed.length === expected.length && timingSafeEqual(claimed, expected);
    if (isAuthentic) response.status(200).json({ received: true });
    else response.status(401).json({ error: 'unauthorized' });
  };
}

const server = app.listen(0, '127.0.0.1', () => tell('listening', (server.address() as AddressInfo).port));
server.keepAliveTimeout = 65_000;
