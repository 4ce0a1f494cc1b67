// The publisher against the broker: how messages reach the socket, and what becomes of those in flight.

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { type ConfirmChannel, connect } from 'amqplib';
import { expect, test } from 'vitest';
import type { Publisher } from '../../../src/relay/publisher.ts';
import { amqpUrl, type Bus, listen, newExchange } from '../../support/bus.ts';
import { startProxy } from '../../support/proxy.ts';
import { createTestPublisher, newMessage } from '../../support/relay.ts';
import { createTestLog } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';

/** So long that no heartbeat is written, or expected, meanwhile. */
const NO_HEARTBEAT_S = 300;
const REPLACED = 'the broker nacks: events go by another channel';
const SLOW = 'events of this route are published apart from the others, few at a time';

const toBroker = () => startProxy(amqpUrl(), { defaultPort: 5672 });

/** Counts how often the sockets that are connected to this port from now on are written to. */
function countWrites(port: number) {
  let writes = 0;
  const count = (message: unknown) => {
    const { socket } = message as { socket: Socket };
    socket.once('connect', () => {
      if (socket.remotePort !== port) return;
      for (const method of ['_write', '_writev'] as const) {
        const original = socket[method]?.bind(socket) as (...args: unknown[]) => void;
        Object.assign(socket, {
          [method]: (...args: unknown[]) => {
            writes += 1;
            original(...args);
          },
        });
      }
    });
  };
  subscribe('net.client.socket', count);
  return {
    since: (before: number) => writes - before,
    now: () => writes,
    [Symbol.dispose]: () => {
      unsubscribe('net.client.socket', count);
    },
  };
}

type Publish = (this: ConfirmChannel, ...args: Parameters<ConfirmChannel['publish']>) => boolean;

/** Sees by which channel each message goes, and keeps the broker's answers for these back, as for a queue without a leader. */
async function withholdAnswers(...ids: string[]) {
  const model = await connect(amqpUrl());
  const prototype = Object.getPrototypeOf(await model.createConfirmChannel()) as ConfirmChannel;
  await model.close();
  const publish = Reflect.get(prototype, 'publish') as Publish;
  const channels = new Map<unknown, ConfirmChannel>();
  const answers: (() => void)[] = [];
  let isReleased = false;
  prototype.publish = function kept(this: ConfirmChannel, exchange, key, body, options, callback) {
    channels.set(options?.messageId, this);
    if (!ids.includes(options?.messageId ?? ''))
      return publish.call(this, exchange, key, body, options, callback);
    return publish.call(this, exchange, key, body, options, (error, ok) => {
      const answer = () => callback?.(error, ok);
      if (isReleased) answer();
      else answers.push(answer);
    });
  };
  return {
    channelOf: (id: string) => channels.get(id),
    release: () => {
      isReleased = true;
      for (const answer of answers) answer();
    },
    [Symbol.dispose]: () => {
      prototype.publish = publish;
    },
  };
}

/** A queue that nacks all but the first message. */
async function newFullQueue(bus: Bus): Promise<string> {
  const { queue } = await bus.channel.assertQueue('', {
    exclusive: true,
    arguments: { 'x-max-length': 1, 'x-overflow': 'reject-publish' },
  });
  return queue;
}

/** Completed events are received. A queue beside it takes one failed event, and nacks all others. */
async function listenBesideFull(exchange: string): Promise<Bus> {
  const bus = await listen(exchange, { bindings: ['job.completed.#'] });
  await bus.channel.bindQueue(await newFullQueue(bus), exchange, 'job.failed.#');
  return bus;
}

async function fillAndNack(publisher: Pick<Publisher, 'publish'>): Promise<void> {
  const failed = { routingKey: 'job.failed.default' };
  expect(await publisher.publish({ ...newMessage('fills'), ...failed })).toMatchObject({
    result: 'confirmed',
  });
  expect(await publisher.publish({ ...newMessage('refused'), ...failed })).toMatchObject({
    result: 'nacked',
  });
}

const untilReady = (publisher: Publisher) => waitFor(() => expect(publisher.isReady()).toBe(true));

const messages = (prefix: string, count: number, bytes = 2) =>
  Array.from({ length: count }, (_, number) => ({
    ...newMessage(`${prefix}:${number}`),
    body: Buffer.from(JSON.stringify('x'.repeat(bytes))),
  }));

test('what is published in one turn goes out in one write, on each connection', async () => {
  const exchange = newExchange();
  await using proxy = await toBroker();
  await using bus = await listen(exchange);
  using writes = countWrites(proxy.port);
  const publisher = createTestPublisher({ exchange, url: proxy.url, heartbeatS: NO_HEARTBEAT_S });
  try {
    for (const connection of ['first', 'second']) {
      await untilReady(publisher);
      const before = writes.now();
      const batch = messages(connection, 50);
      const results = await Promise.all(batch.map(publisher.publish));
      expect(results.filter(({ result }) => result !== 'confirmed')).toEqual([]);
      expect(writes.since(before)).toBe(1);
      await waitFor(() => expect(bus.ids().slice(-50)).toEqual(batch.map(({ messageId }) => messageId)));

      proxy.cut();
      await waitFor(() => expect(publisher.isReady()).toBe(false));
    }
  } finally {
    await publisher.close();
  }
});

test('more than the socket holds goes out in few writes, in order and whole', async () => {
  const exchange = newExchange();
  await using proxy = await toBroker();
  await using bus = await listen(exchange);
  using writes = countWrites(proxy.port);
  const publisher = createTestPublisher({ exchange, url: proxy.url, heartbeatS: NO_HEARTBEAT_S });
  try {
    await untilReady(publisher);
    const before = writes.now();
    const batch = messages('a', 500, 1_000); // eight times what a socket holds before it asks to wait
    batch.splice(250, 0, ...messages('large', 1, 300_000)); // several frames
    const results = await Promise.all(batch.map(publisher.publish));

    expect(results.filter(({ result }) => result !== 'confirmed')).toEqual([]);
    expect(writes.since(before)).toBeLessThan(50);
    await bus.received(batch.length);
    expect(bus.ids()).toEqual(batch.map(({ messageId }) => messageId));
    expect(bus.messages.map(({ text }) => text)).toEqual(batch.map(({ body }) => body.toString()));
  } finally {
    await publisher.close();
  }
});

test('a connection without confirms is given up: what is in flight on it fails, and the next one publishes', async () => {
  const exchange = newExchange();
  const confirmDeadlineMs = 10_000;
  let aheadMs = 0;
  await using proxy = await toBroker();
  await using bus = await listen(exchange);
  const publisher = createTestPublisher({
    exchange,
    url: proxy.url,
    heartbeatS: NO_HEARTBEAT_S,
    confirmDeadlineMs,
    now: () => performance.now() + aheadMs,
  });
  try {
    await untilReady(publisher);
    proxy.silence();
    const overdue = publisher.publish(newMessage('a'));
    aheadMs += confirmDeadlineMs;
    const recent = publisher.publish(newMessage('b'));

    for (const publication of await Promise.all([overdue, recent])) {
      expect(publication).toMatchObject({ result: 'failed', detail: 'confirm overdue', blame: 'broker' });
    }
    expect(publisher.state().connected).toBe(false);
    // The broker does not answer the close, and no heartbeat is missed yet.
    await untilReady(publisher);
    expect(await publisher.publish(newMessage('c'))).toMatchObject({ result: 'confirmed' });
    await bus.received(1);
  } finally {
    proxy.cut();
    await publisher.close();
  }
});

test('with other nodes in its URL one that falls silent is given up after a quarter of that time, and the next one has all of it', async () => {
  const exchange = newExchange();
  const confirmDeadlineMs = 40_000;
  let aheadMs = 0;
  await using first = await toBroker();
  await using second = await toBroker();
  await using bus = await listen(exchange);
  const publisher = createTestPublisher({
    exchange,
    url: `${first.url},${second.url}`,
    heartbeatS: NO_HEARTBEAT_S,
    confirmDeadlineMs,
    now: () => performance.now() + aheadMs,
  });
  try {
    await untilReady(publisher);
    const [silent, other] = first.accepted() === 1 ? [first, second] : [second, first];
    expect(await publisher.publish(newMessage('a'))).toMatchObject({ result: 'confirmed' });
    silent.silence();
    const overdue = publisher.publish(newMessage('b'));
    aheadMs += confirmDeadlineMs / 4;

    expect(await overdue).toMatchObject({ result: 'failed', detail: 'confirm overdue', blame: 'broker' });
    await untilReady(publisher);
    expect(other.accepted()).toBe(1);
    other.slow(1_500); // some checks long
    const late = publisher.publish(newMessage('c'));
    aheadMs += confirmDeadlineMs / 4;
    expect(await late).toMatchObject({ result: 'confirmed' });
    await bus.received(2);
  } finally {
    first.cut();
    second.cut();
    await publisher.close();
  }
});

test('a channel that nacks is replaced on the same connection, and what is in flight on it gets its answers there', async () => {
  const exchange = newExchange();
  const { log, lines } = createTestLog();
  const isReplaced = () => lines.some(({ msg }) => msg === REPLACED);
  await using proxy = await toBroker();
  await using bus = await listenBesideFull(exchange);
  const publisher = createTestPublisher({ exchange, url: proxy.url, log });
  try {
    await untilReady(publisher);
    await fillAndNack(publisher);

    proxy.slow(100); // so that some are always in flight
    const publications = [];
    while (!isReplaced()) {
      publications.push(publisher.publish(newMessage(`a${publications.length}`)));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    publications.push(publisher.publish(newMessage('after')));

    expect((await Promise.all(publications)).filter(({ result }) => result !== 'confirmed')).toEqual([]);
    await bus.received(publications.length);
    expect(new Set(bus.ids()).size).toBe(bus.messages.length);
    expect(proxy.accepted()).toBe(1);
  } finally {
    await publisher.close();
  }
});

test('a side channel that nacks is replaced while something is in flight on it, which gets its answer there', async () => {
  const exchange = newExchange();
  let nowMs = 1_000;
  await using bus = await listen(exchange);
  using broker = await withholdAnswers('unanswered');
  const queue = await newFullQueue(bus);
  const publisher = createTestPublisher({ exchange, now: () => nowMs });
  try {
    await untilReady(publisher);
    await publisher.publish({ ...newMessage('fills'), queue });
    const unanswered = publisher.publish({ ...newMessage('unanswered'), queue: bus.queue });
    expect(await publisher.publish({ ...newMessage('refused'), queue })).toMatchObject({ result: 'nacked' });
    expect(broker.channelOf('unanswered')).toBe(broker.channelOf('refused'));
    nowMs += 1_000;

    let count = 0;
    await waitFor(async () => {
      count += 1;
      await publisher.publish({ ...newMessage(`again${count}`), queue });
      expect(broker.channelOf(`again${count}`)).not.toBe(broker.channelOf('refused'));
    });
    broker.release();
    expect(await unanswered).toMatchObject({ result: 'confirmed' });
    await bus.received(1);
  } finally {
    await publisher.close();
  }
});

test('what a replaced channel does not answer fails because of its route, which is slow, and the connection stays', async () => {
  const exchange = newExchange();
  const { log, lines } = createTestLog();
  const confirmDeadlineMs = 40_000;
  let nowMs = 1_000;
  await using proxy = await toBroker();
  await using bus = await listenBesideFull(exchange);
  using broker = await withholdAnswers('unanswered');
  const publisher = createTestPublisher({
    exchange,
    url: proxy.url,
    heartbeatS: NO_HEARTBEAT_S,
    confirmDeadlineMs,
    now: () => nowMs,
    log,
  });
  try {
    await untilReady(publisher);
    await fillAndNack(publisher);
    const unanswered = publisher.publish(newMessage('unanswered'));
    nowMs += 1_000;
    await waitFor(() => expect(lines.map(({ msg }) => msg)).toContain(REPLACED));
    const other = { ...newMessage('other'), routingKey: 'job.completed.other' };
    expect(await publisher.publish(other)).toMatchObject({ result: 'confirmed' });
    expect(broker.channelOf('other')).not.toBe(broker.channelOf('unanswered'));
    nowMs += confirmDeadlineMs;

    expect(await unanswered).toMatchObject({ result: 'failed', detail: 'confirm overdue', blame: 'route' });
    expect(lines).toContainEqual(expect.objectContaining({ msg: SLOW, route: 'job.completed.default' }));
    expect(lines.map(({ msg }) => msg)).not.toContain('no confirms from the broker, reopening the channel');
    expect(proxy.accepted()).toBe(1);
    await bus.received(2);
  } finally {
    await publisher.close();
  }
});

test('what a replaced channel does not answer is the fault of a broker that does not answer on the next one, either', async () => {
  const exchange = newExchange();
  const { log, lines } = createTestLog();
  const confirmDeadlineMs = 40_000;
  let nowMs = 1_000;
  await using bus = await listenBesideFull(exchange);
  using broker = await withholdAnswers('before', 'after', 'beside');
  const publisher = createTestPublisher({ exchange, confirmDeadlineMs, now: () => nowMs, log });
  try {
    await untilReady(publisher);
    await fillAndNack(publisher);
    const before = publisher.publish(newMessage('before'));
    const beside = publisher.publish({ ...newMessage('beside'), queue: bus.queue });
    await waitFor(() => expect(broker.channelOf('beside')).toBeDefined()); // its channel is opened first
    nowMs += 1_000;
    await waitFor(() => expect(lines.map(({ msg }) => msg)).toContain(REPLACED));
    const after = publisher.publish(newMessage('after'));
    expect(broker.channelOf('after')).not.toBe(broker.channelOf('before'));
    nowMs += confirmDeadlineMs - 500; // this check finds what is overdue of the first two, the next one the third

    expect(await beside).toMatchObject({ result: 'failed', blame: 'route' });
    expect(await after).toMatchObject({ result: 'failed', blame: 'broker' });
    expect(await before).toMatchObject({ result: 'failed', blame: 'broker' });
    expect(lines).not.toContainEqual(expect.objectContaining({ msg: SLOW, route: 'job.completed.default' }));
  } finally {
    await publisher.close();
  }
});

test('with other nodes in its URL one that falls silent after its channel was replaced is given up as soon, and no route is slow', async () => {
  const exchange = newExchange();
  const { log, lines } = createTestLog();
  const confirmDeadlineMs = 40_000;
  let nowMs = 1_000;
  await using first = await toBroker();
  await using second = await toBroker();
  await using _ = await listenBesideFull(exchange);
  const publisher = createTestPublisher({
    exchange,
    url: `${first.url},${second.url}`,
    heartbeatS: NO_HEARTBEAT_S,
    confirmDeadlineMs,
    now: () => nowMs,
    log,
  });
  try {
    await untilReady(publisher);
    const [silent, other] = first.accepted() === 1 ? [first, second] : [second, first];
    await fillAndNack(publisher);
    nowMs += 1_000;
    await waitFor(() => expect(lines.map(({ msg }) => msg)).toContain(REPLACED));
    silent.silence();
    const overdue = publisher.publish(newMessage('a'));
    nowMs += confirmDeadlineMs / 4 + 1;

    expect(await overdue).toMatchObject({ result: 'failed', detail: 'confirm overdue', blame: 'broker' });
    await untilReady(publisher);
    expect(other.accepted()).toBe(1);
    expect(lines.map(({ msg }) => msg)).not.toContain(SLOW);
  } finally {
    first.cut();
    second.cut();
    await publisher.close();
  }
});

test('a process that stood still for longer than a confirm may take reads first what has arrived meanwhile', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  const confirmDeadlineMs = 1_000;
  const publisher = createTestPublisher({ exchange, confirmDeadlineMs });
  try {
    await waitFor(() => expect(publisher.isReady()).toBe(true));
    for (let round = 0; round < 3; round++) {
      const publication = publisher.publish(newMessage(`a${round}`));
      for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve)); // it is written
      const untilMs = performance.now() + 2.5 * confirmDeadlineMs;
      while (performance.now() < untilMs); // as a frozen process, or one that gets no processor
      expect(await publication).toMatchObject({ result: 'confirmed' });
    }
    await bus.received(3);
  } finally {
    await publisher.close();
  }
});

test('an exchange that operations made with an alternate exchange is used, and told', async () => {
  const exchange = newExchange();
  const { log, lines } = createTestLog();
  await using bus = await listen(newExchange());
  await bus.channel.assertExchange(exchange, 'topic', { durable: true, alternateExchange: 'amq.fanout' });
  await bus.channel.bindQueue(bus.queue, exchange, 'job.#');
  const publisher = createTestPublisher({ exchange, log });
  try {
    await untilReady(publisher);
    expect(await publisher.publish(newMessage('a'))).toMatchObject({ result: 'confirmed' });
    await bus.received(1);
    expect(lines.map(({ msg, detail }) => [msg, detail])).toContainEqual([
      'the exchange exists with another argument, and is used',
      expect.stringContaining("inequivalent arg 'alternate-exchange'"),
    ]);
  } finally {
    await publisher.close();
    await bus.channel.deleteExchange(exchange);
  }
});

test.for([
  ['of another type', 'direct', {}, "is of type 'direct' and has to be of type 'topic'"],
  ['that is internal', 'topic', { internal: true }, 'is internal, so nobody can publish to it'],
] as const)(
  'an exchange %s is refused in one sentence, and used once it is mended',
  async ([, type, options, sentence]) => {
    const exchange = newExchange();
    const { log, lines } = createTestLog();
    await using bus = await listen(newExchange());
    await bus.channel.assertExchange(exchange, type, { durable: true, ...options });
    const publisher = createTestPublisher({ exchange, log });
    try {
      await waitFor(() =>
        expect(lines).toContainEqual(
          expect.objectContaining({
            msg: 'the broker refuses us',
            err: expect.objectContaining({
              code: 'broker_refused',
              message: expect.stringContaining(`the exchange '${exchange}' ${sentence}`) as string,
            }) as object,
          }),
        ),
      );
      await bus.channel.deleteExchange(exchange);
      await untilReady(publisher);
    } finally {
      await publisher.close();
      await bus.channel.deleteExchange(exchange);
    }
  },
);
