// A broker of several nodes, as two ways to one RabbitMQ: whoever loses one goes on by the other.

import { expect, test } from 'vitest';
import { amqpUrl, listen, newExchange } from '../../support/bus.ts';
import { type Proxy, startProxy } from '../../support/proxy.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';
import { startSubscriberWorld } from '../../support/subscribers.ts';
import { waitFor } from '../../support/waits.ts';

const WAIT = { timeout: 20_000 };

const startNode = () => startProxy(amqpUrl(), { defaultPort: 5672 });

const down = (node: Proxy) => {
  node.refuse();
  node.cut();
};

test('events are published while one node of two is away, whichever it is', async () => {
  await using first = await startNode();
  await using second = await startNode();
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using relay = await startTestService({
    exchange,
    env: { AMQP_URL: `${first.url},${second.url}` },
  });
  const send = async (count: number) => {
    await deliver(relay.webhooks, completed(newJobId()));
    await bus.received(count);
  };
  await send(1);

  down(first);
  await send(2);
  first.heal();
  down(second);
  await send(3);

  const addresses = relay.log.flatMap(({ msg, ...rest }) =>
    msg === 'broker connected' ? [(rest as { address?: string }).address] : [],
  );
  expect(addresses.at(-1)).toBe(`127.0.0.1:${first.port}`);
  expect(new Set(addresses)).toContain(`127.0.0.1:${second.port}`);
});

test('a subscriber goes on by the other node', async () => {
  await using first = await startNode();
  await using second = await startNode();
  await using world = await startSubscriberWorld();
  const seen: string[] = [];
  await world.subscribe({
    url: `${first.url},${second.url}`,
    on: { completed: ({ id }) => void seen.push(id) },
  });
  const receive = async (job: string) => {
    const ids = await world.publish([{ job }]);
    await waitFor(() => expect(seen).toEqual(expect.arrayContaining(ids)), WAIT);
  };
  await receive('before');

  down(first);
  await receive('without-the-first');
  first.heal();
  down(second);
  await receive('without-the-second');
  expect(first.accepted()).toBeGreaterThan(0);
  expect(second.accepted()).toBeGreaterThan(0);
});
