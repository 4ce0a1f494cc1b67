// A bare publisher on amqplib: publishes ready-made messages like Tallyhook's on one confirm channel, with as many unconfirmed as
// Tallyhook's relay allows. It shows the most that the broker and its client can do.

import { connect, type ConfirmChannel } from 'amqplib';
import { monotonicUs } from '../clock.ts';
import { connectToBenchmark } from '../control.ts';
import { bodyOf, eventIdOf } from '../load/notifications.ts';
import { createLatencies, recordUs, summarize } from '../load/latency.ts';
import type { PublishPlan, PublishReport } from '../load/plan.ts';

/** Made before the start. After these the bodies are used again, with new ids. */
const STOCK = 50_000;

type Ready = { readonly body: Buffer; readonly routingKey: string };

const { AMQP_URL = '', EXCHANGE = '' } = process.env;
const { tell, on } = await connectToBenchmark();
const connection = await connect(AMQP_URL, { noDelay: true });
const channel = await connection.createConfirmChannel();
await channel.assertExchange(EXCHANGE, 'topic', { durable: true });

on('plan', (given) => {
  const plan = given as PublishPlan;
  const stock = Array.from({ length: STOCK }, (_, number) => makeReady(plan, number));
  on('go', () => void run(plan, stock));
  tell('ready');
});

async function run(plan: PublishPlan, stock: readonly Ready[]): Promise<void> {
  const latencies = createLatencies();
  const counts = { issued: 0, confirmed: 0, inWindow: 0 };
  const phase = { isStopped: false, isMeasured: false };
  const drained = Promise.withResolvers<void>();

  function publishNext(to: ConfirmChannel): void {
    const number = counts.issued++;
    const { body, routingKey } = stock[number % STOCK] as Ready;
    const sentUs = monotonicUs();
    const options = {
      messageId: eventIdOf(plan.run, number),
      contentType: 'application/cloudevents+json',
      persistent: true,
      mandatory: true,
    };
    to.publish(EXCHANGE, routingKey, body, options, (error: Error | null) => {
      if (error) return drained.reject(error);
      counts.confirmed += 1;
      if (phase.isMeasured) {
        counts.inWindow += 1;
        recordUs(latencies, monotonicUs() - sentUs);
      }
      if (!phase.isStopped) publishNext(to);
      else if (counts.confirmed === counts.issued) drained.resolve();
    });
  }

  for (let slot = 0; slot < plan.inFlight; slot++) publishNext(channel);
  await delay(plan.warmUpS * 1_000);
  const fromUs = monotonicUs();
  phase.isMeasured = true;
  tell('window', counts.confirmed);
  await delay(plan.durationS * 1_000);
  const toUs = monotonicUs();
  phase.isMeasured = false;
  tell('window', counts.confirmed);
  phase.isStopped = true;
  await drained.promise;
  const report: PublishReport = {
    fromUs,
    toUs,
    confirmed: counts.confirmed,
    confirmedPerS: (counts.inWindow / (toUs - fromUs)) * 1_000_000,
    latency: summarize(latencies),
  };
  tell('done', report);
}

/** With the fields and size of Tallyhook's CloudEvent of a notification. All are of one kind, since nobody reads them. */
function makeReady({ run: name, bodyBytes }: PublishPlan, number: number): Ready {
  const envelope = {
    specversion: '1.0',
    id: eventIdOf(name, number),
    type: 'conversion.job.completed',
    source: '/sources/default',
    subject: eventIdOf(name, number).split(':')[1],
    time: '2026-11-21T10:02:41.917Z',
    recordedtime: '2026-11-21T10:02:42.003Z',
    sequence: String(number).padStart(19, '0'),
    datacontenttype: 'application/json',
    dataschema: 'urn:tallyhook:schema:conversion.job.completed:1',
  };
  const data = bodyOf(name, number, bodyBytes);
  const text = `${JSON.stringify(envelope).slice(0, -1)},"data":${data}}`;
  return { body: Buffer.from(text), routingKey: 'job.completed.default' };
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
