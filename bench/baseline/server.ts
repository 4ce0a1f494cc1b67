// The baseline: the handler that a competent developer writes by hand with the same packages. Verify, parse, one INSERT … ON
// CONFLICT DO NOTHING, one publish and wait for its confirm, one UPDATE, then 200. It is as fast as such a handler can be:
// prepared statements, one confirm channel for all, the best pool size (the case `tuning`), no logging, no ETag.
//
// It guarantees less than Tallyhook: a crash between INSERT and publish loses the event for good, since the repeat finds the row
// and is answered as a duplicate. Order within a job is not kept. While the broker is away nothing is acknowledged.

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { type ConfirmChannel, connect, type Options } from 'amqplib';
import express, { type RequestHandler } from 'express';
import { Pool } from 'pg';
import { getRawBody } from 'raw-body';
import { connectToBenchmark } from '../control.ts';

type Webhook = { readonly job_id: string; readonly status: string; readonly progress_percentage?: number };

const BODY_LIMIT_BYTES = 262_144;
const KINDS: Readonly<Record<string, string>> = {
  processing: 'progress',
  completed: 'completed',
  failed: 'failed',
};

const { DATABASE_URL, DATABASE_CONNECTIONS, AMQP_URL = '', EXCHANGE = '', SECRET = '' } = process.env;
const { tell } = await connectToBenchmark();

const pool = new Pool({ connectionString: DATABASE_URL, max: Number(DATABASE_CONNECTIONS) });
pool.on('error', () => {});
const broker = await connect(AMQP_URL, { noDelay: true });
const channel = await broker.createConfirmChannel();
await channel.assertExchange(EXCHANGE, 'topic', { durable: true });

const app = express();
app.disable('x-powered-by');
app.disable('etag');
app.post('/webhooks', receive());

function receive(): RequestHandler {
  return async (request, response) => {
    const body = await getRawBody(request, {
      length: request.get('content-length') ?? null,
      limit: BODY_LIMIT_BYTES,
    });
    if (!isAuthentic(body, request.get('x-service-signature'))) {
      response.status(401).json({ error: 'unauthorized' });
      return;
    }
    const webhook = JSON.parse(body.toString('utf8')) as Webhook;
    const key = keyOf(webhook);
    const inserted = await pool.query<{ id: string }>({
      name: 'insert',
      text: `insert into webhook_events (event_key, job_id, status, body) values ($1, $2, $3, $4)
             on conflict (event_key) do nothing returning id`,
      values: [key, webhook.job_id, webhook.status, body],
    });
    const id = inserted.rows[0]?.id;
    if (id !== undefined) {
      await publish(channel, `job.${KINDS[webhook.status] ?? 'unknown'}.default`, body, {
        messageId: key,
        contentType: 'application/json',
        persistent: true,
      });
      await pool.query({
        name: 'published',
        text: 'update webhook_events set published_at = now() where id = $1',
        values: [id],
      });
    }
    response.status(200).json({ received: true });
  };
}

function isAuthentic(body: Buffer, header: string | undefined): boolean {
  const expected = Buffer.from(`sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`);
  const claimed = Buffer.from(header ?? '');
  return claimed.length === expected.length && timingSafeEqual(claimed, expected);
}

function keyOf({ job_id, status, progress_percentage }: Webhook): string {
  const suffix = status === 'processing' ? `:${progress_percentage}` : '';
  return `default:${job_id}:${status}${suffix}`;
}

function publish(to: ConfirmChannel, key: string, body: Buffer, options: Options.Publish): Promise<void> {
  return new Promise((resolve, reject) => {
    to.publish(EXCHANGE, key, body, options, (error: Error | null) => (error ? reject(error) : resolve()));
  });
}

const server = app.listen(0, '127.0.0.1', () => tell('listening', (server.address() as AddressInfo).port));
server.keepAliveTimeout = 65_000;
