// Fills a relay with the history that the pictures show: real deliveries over HTTP, published to real queues, decided by
// operators through the API. Afterwards the deliveries are moved back in time.

import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'amqplib';
import { Client } from 'pg';
import { moveBack } from './age.ts';
import { actAsOperators } from './operators.ts';
import { FULL, plan, type Sent, SOURCES } from './plan.ts';
import type { Stage } from './stage.ts';

const EXCHANGE = 'conversion.events';
const TIMEOUT_MS = 30_000;
const POLL_MS = 100;
/** Of the senders, from the range for documentation. */
const ADDRESSES: Readonly<Record<string, string>> = { default: '192.0.2.10', studio: '198.51.100.7' };
const OTHER_ADDRESS = '203.0.113.25';
/** Shown in place of the name that this machine has. */
const HOST = 'relay-1';

export async function makeHistory(stage: Stage): Promise<void> {
  const client = new Client({ connectionString: stage.databaseUrl });
  await client.connect();
  try {
    await bindQueues(stage.amqpUrl);
    const sent = plan(Date.now());
    for (const each of sent) await send(stage, each);
    await waitUntilQuiet(client, sent.length);
    await moveBack(
      client,
      sent.map(({ minutesAgo }) => minutesAgo),
    );
    await client.query('update replicas set host = $1', [HOST]);
    await actAsOperators(stage);
  } finally {
    await client.end();
  }
}

export async function send({ webhooks, secrets }: Stage, sent: Omit<Sent, 'minutesAgo'>): Promise<void> {
  const { source, body, isForged, status } = sent;
  const secret = isForged ? 'another secret' : (secrets.get(source) ?? '');
  const response = await fetch(`${webhooks}${source === 'default' ? '' : `/${source}`}`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'User-Agent': 'conversion-service/1.0',
      'X-Service-Signature': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
      'X-Forwarded-For': isForged ? OTHER_ADDRESS : (ADDRESSES[source] ?? '203.0.113.4'),
    },
    body,
  });
  await response.arrayBuffer();
  if (response.status !== status) throw new Error(`${body.slice(0, 200)}: ${response.status}, not ${status}`);
}

/** All but one source have a subscriber. Failures of one are also for a queue that is full, so that the broker refuses them. */
async function bindQueues(amqpUrl: string): Promise<void> {
  const connection = await connect(amqpUrl);
  const channel = await connection.createChannel();
  await channel.assertExchange(EXCHANGE, 'topic', { durable: true });
  await channel.assertQueue('billing', { durable: true });
  for (const source of SOURCES) await channel.bindQueue('billing', EXCHANGE, `job.*.${source}`);
  await channel.assertQueue('alarms', {
    durable: true,
    maxLength: 0,
    arguments: { 'x-overflow': 'reject-publish' },
  });
  await channel.bindQueue('alarms', EXCHANGE, `job.failed.${FULL}`);
  await connection.close();
}

/** All counted and published, except what waits for an operator. */
async function waitUntilQuiet(client: Client, answers: number): Promise<void> {
  const deadlineMs = performance.now() + TIMEOUT_MS;
  while (performance.now() < deadlineMs) {
    const { rows } = await client.query<{ quiet: boolean }>(
      `select not exists (select from outbox_batches) and not exists (select from outbox_held where state = 'pending')
         and (select count(*) from publications)
             + (select coalesce(sum(cardinality(sequences)), 0) from publication_batches) =
           coalesce((select sum(count) from rollups where measure = 'lag'), 0)
         and coalesce((select sum(count) from rollups where measure = 'answer'), 0) >= $1 as quiet`,
      [answers],
    );
    if (rows[0]?.quiet) return;
    await sleep(POLL_MS);
  }
  throw new Error('the relay did not come to rest');
}
