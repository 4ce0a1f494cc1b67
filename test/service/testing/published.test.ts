// The samples of tallyhook/testing against what the real relay publishes of the same notifications.

import { expect, test } from 'vitest';
import { KINDS, type ConversionEvent } from '../../../src/event/index.ts';
import { messageOf, sampleEvent, signedNotification } from '../../../src/testing/index.ts';
import { listen, newExchange } from '../../support/bus.ts';
import { SECRET } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';

test('a sample event has the body and the properties that the relay publishes, and so has its message', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using relay = await startTestService({ exchange });
  for (const kind of KINDS) {
    const { body, headers } = signedNotification({ kind, secret: SECRET, job: `job_${kind}` });
    const { status } = await fetch(relay.webhooks, { method: 'POST', body, headers });
    expect(status).toBe(202);
  }
  await bus.received(KINDS.length);

  // Jobs are published side by side. Through the bus a second time, so that the broker's and the client's own marks are the same.
  for (const { event, properties, routingKey, text } of bus.messages.slice()) {
    const { type, sequence, recordedtime } = event as unknown as ConversionEvent;
    const kind = KINDS.find((each) => type.endsWith(each)) ?? 'progress';
    const sample = sampleEvent({ kind, job: `job_${kind}`, sequence: BigInt(sequence) });
    // Progress does not say when it happened: then an event has the time at which it was recorded.
    const timed = { ...sample, recordedtime, ...(kind === 'progress' && { time: recordedtime }) };
    const message = messageOf(timed);
    const published = bus.messages.length;
    bus.channel.publish(exchange, message.routingKey, message.content, message.properties);
    const again = (await bus.received(published + 1))[published];
    expect(again).toMatchObject({ routingKey, text, properties });
  }
});
