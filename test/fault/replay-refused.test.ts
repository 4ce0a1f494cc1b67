import { afterAll, beforeAll, expect, test } from 'vitest';
import { type RabbitmqServer, startRabbitmq } from '../../scripts/services/rabbitmq.ts';
import { listen, newExchange } from '../support/bus.ts';
import { copies } from '../support/facts.ts';
import { operators } from '../support/operators.ts';
import { seedEvents } from '../support/replays.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/waits.ts';

let broker: RabbitmqServer;

beforeAll(async () => {
  broker = await startRabbitmq();
});

afterAll(() => broker.close());

test('a replay to a queue that the broker refuses us is paused, though each refusal closes the channel, and live events go on', async () => {
  const [user, password] = ['careful', 'careful-password'];
  await broker.ctl('add_user', user, password);
  // It may publish to the exchanges of tests, but not to the default exchange.
  await broker.ctl('set_permissions', '-p', '/', user, '.*', '^test\\.', '.*');
  const exchange = newExchange();
  await using bus = await listen(exchange, { url: broker.url });
  const { queue } = await bus.channel.assertQueue('test.refill', { exclusive: true });
  const url = new URL(broker.url);
  url.username = user;
  url.password = password;
  await using service = await startTestService({ exchange, env: { AMQP_URL: url.href } });
  const api = await operators(service, { role: 'operator' });
  await seedEvents(service.database, 400);

  const { body } = await api.post<{ id: string }>('/replays', {
    filter: { job_id_prefix: 'job_0' },
    queue,
    rate_per_second: 1_000,
  });
  const live = Array.from({ length: 30 }, newJobId);
  for (const job of live) await deliver(service.webhooks, completed(job));

  await waitFor(
    async () =>
      expect((await api.get(`/replays/${body.id}`)).body).toMatchObject({
        state: 'paused',
        paused_because: expect.stringContaining('ACCESS_REFUSED') as string,
        counts: { confirmed: 0, returned: 0, failed: 0 },
      }),
    { timeout: 20_000, interval: 100 },
  );
  await waitFor(
    () => expect(new Set(bus.ids())).toEqual(new Set(live.map((job) => `default:${job}:completed`))),
    { timeout: 20_000, interval: 50 },
  );
  const more = newJobId();
  await deliver(service.webhooks, completed(more));
  await waitFor(() => expect(copies(bus.messages).get(`default:${more}:completed`)).toBe(1));

  // The broker's operator allows it, and ours resumes it.
  await broker.ctl('set_permissions', '-p', '/', user, '.*', '.*', '.*');
  await waitFor(
    async () => {
      await api.post(`/replays/${body.id}/resume`);
      expect((await api.get(`/replays/${body.id}`)).body).toMatchObject({ state: 'finished' });
    },
    { timeout: 30_000, interval: 500 },
  );
  expect((await bus.channel.checkQueue(queue)).messageCount).toBe(400);
});
