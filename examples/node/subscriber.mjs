// Keeps the history of all jobs in Postgres, from the events that Tallyhook publishes. Each event takes effect once, and those
// of one job in their order: whatever happens to the connection, the broker, the database or this program.

import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'amqplib';
import { Pool } from 'pg';

for (const name of ['AMQP_URL', 'DATABASE_URL', 'QUEUE'])
  if (!process.env[name]) throw new Error(`${name} is not set`);
const { AMQP_URL, DATABASE_URL, QUEUE } = process.env;
const EXCHANGE = 'conversion.events';
const BINDING = 'job.#';
const PREFETCH = 50; // events that the broker sends ahead; they are handled one after the other
const ATTEMPTS = 4; // at an event whose handling fails; then it goes to the dead-letter queue
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;
const TYPES = ['conversion.job.completed', 'conversion.job.failed', 'conversion.job.progress'];
// happened_at as sent: it may have more digits than a timestamptz takes.
const TABLES = `
  create table if not exists handled_events (id text primary key, handled_at timestamptz not null default now());
  create table if not exists job_history (
    position bigserial primary key, source text not null, job_id text not null, status text not null,
    progress int, cost_cents bigint, happened_at text not null)`;

const warn = (error) => console.warn(error.message);

const pool = new Pool({
  connectionString: DATABASE_URL,
  connectionTimeoutMillis: 5_000,
  statement_timeout: 20_000,
  query_timeout: 30_000,
});
pool.on('error', warn);
pool.on('connect', (client) => client.on('error', warn));

const stop = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stop.abort());

for (let failures = 0; !stop.signal.aborted; failures += 1) {
  const startedMs = performance.now();
  try {
    await consume();
  } catch (error) {
    console.warn(`connecting again, since ${error.message}`);
  }
  if (performance.now() - startedMs > LONGEST_WAIT_MS) failures = 0;
  await pause(failures, stop.signal);
}
await pool.end();
console.log('stopped');

/** Handles events until it should stop, or the connection is lost. What is not acknowledged then comes again. */
async function consume() {
  await pool.query(TABLES);
  const connection = await connect(AMQP_URL, { timeout: 10_000 });
  const lost = new AbortController();
  connection.on('error', () => {}); // 'close' follows, with the same error
  connection.on('close', (reason) => lost.abort(reason));
  try {
    const channel = await connection.createChannel();
    channel.on('error', (reason) => lost.abort(reason));
    await declare(channel);
    const ended = AbortSignal.any([stop.signal, lost.signal]);
    // In a row. amqplib does not wait for an async function: it would start the work at all 50 events at once.
    let work = Promise.resolve();
    await channel.consume(QUEUE, (message) => {
      if (message === null) return lost.abort(new Error('the broker ended the consumer'));
      work = work.then(() => settle(channel, message, ended)).catch((error) => lost.abort(error));
    });
    console.log(`waiting for events in ${QUEUE}`);
    if (!ended.aborted) await once(ended, 'abort');
    await work;
    lost.signal.throwIfAborted();
    // Not channel.cancel(): a second consumer would then start before the events that this one still holds are back.
    await channel.close();
  } finally {
    await connection.close().catch(() => {});
  }
}

async function declare(channel) {
  const dead = `${QUEUE}.dead`;
  await channel.assertExchange(dead, 'fanout', { durable: true });
  const deadArguments = { 'x-queue-type': 'quorum', 'x-delivery-limit': 1_000_000 };
  await channel.assertQueue(dead, { durable: true, arguments: deadArguments });
  await channel.bindQueue(dead, dead, '');
  await channel.assertQueue(QUEUE, {
    durable: true,
    arguments: {
      'x-queue-type': 'quorum',
      'x-single-active-consumer': true, // a second program waits until the first is gone: so the order holds
      'x-delivery-limit': 20, // for an event that ends this program; a lost connection counts, too
      'x-dead-letter-exchange': dead,
      'x-dead-letter-strategy': 'at-least-once',
      'x-overflow': 'reject-publish', // at-least-once asks for it
    },
  });
  await channel.bindQueue(QUEUE, EXCHANGE, BINDING);
  await channel.prefetch(PREFETCH);
}

/** Acknowledges an event after its effect is committed. Never requeues one: that would change the order. */
async function settle(channel, message, ended) {
  let event;
  let isKnown;
  try {
    event = JSON.parse(message.content.toString());
    if (!event.id || !event.type) throw new TypeError('it has no id or no type');
    isKnown = event.dataschema.endsWith(':1') && TYPES.includes(event.type); // not a new type, or another version
  } catch (error) {
    console.warn(`rejected, since it is no event: ${error.message}`);
    return channel.reject(message, false);
  }
  for (let failures = 0, waits = 0; !ended.aborted; waits += 1) {
    const outcome = isKnown ? await attempt(event) : 'done';
    if (outcome === 'done') return channel.ack(message);
    if (outcome === 'failed') failures += 1;
    if (failures === ATTEMPTS) return channel.reject(message, false); // to the dead-letter queue
    await pause(waits, ended);
  }
}

/** Resolves to 'done', 'failed', or 'away' if there is no database, which is not the event's fault. */
async function attempt(event) {
  let client;
  try {
    client = await pool.connect();
    await handle(client, event);
    client.release();
    return 'done';
  } catch (error) {
    console.warn(`${event.id}: ${error.message}`);
    client?.release(error); // closes its connection, and so rolls back
    return client === undefined ? 'away' : 'failed';
  }
}

/** Commits the effect and the event's id in one transaction, so that a copy has no effect. */
async function handle(client, { id, source, subject, time, data }) {
  await client.query('begin');
  const inserted = await client.query('insert into handled_events (id) values ($1) on conflict do nothing', [
    id,
  ]);
  if (inserted.rowCount === 1) {
    const cost = data.status === 'completed' ? data.cost_cents : null;
    await client.query(
      `insert into job_history (source, job_id, status, progress, cost_cents, happened_at)
       values ($1, $2, $3, $4, $5, $6)`,
      [source, subject, data.status, data.progress_percentage, cost, time],
    );
  }
  await client.query('commit');
}

/** Waits twice as long as the time before, up to LONGEST_WAIT_MS, or until `signal` is aborted. */
async function pause(waits, signal) {
  const waitMs = Math.min(FIRST_WAIT_MS * 2 ** waits, LONGEST_WAIT_MS);
  await sleep(waitMs, undefined, { signal }).catch(() => {});
}
