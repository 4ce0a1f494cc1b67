import { expect, test } from 'vitest';
import { listen, newExchange } from '../support/bus.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { startTestService } from '../support/service.ts';

test('a signed notification is accepted, tallied and received by a subscriber', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using relay = await startTestService({ exchange });
  const jobId = newJobId();

  const reply = await deliver(relay.webhooks, completed(jobId));

  expect(reply).toMatchObject({
    status: 202,
    body: { outcome: 'accepted', event_id: `default:${jobId}:completed` },
  });
  const [message] = await bus.received(1);
  expect(message).toMatchObject({ id: `default:${jobId}:completed`, routingKey: 'job.completed.default' });
});
