// Faults within RabbitMQ that its operators and other subscribers can cause.

import { randomBytes } from 'node:crypto';
import { setMemoryAlarm } from '../../support/own-servers.ts';
import type { Fault, Stage } from './types.ts';

function subscriberOf({ subscriber }: Stage) {
  if (subscriber === undefined) throw new Error('there is no subscriber whose queue could be touched');
  return subscriber;
}

const missing = ({ subscriber }: Stage) =>
  subscriber === undefined ? 'there is no subscriber whose queue could be touched' : undefined;

/** The name of another subscriber's queue. */
const otherQueue = () => `other.${randomBytes(4).toString('hex')}`;

export const brokerFaults: readonly Fault[] = [
  {
    name: 'memory-alarm',
    subject: 'rabbitmq',
    what: 'RabbitMQ blocks publishers because of a memory alarm',
    strike: async ({ world }) => {
      await setMemoryAlarm(world.rabbitmq, true);
      return { replicas: [], heal: () => setMemoryAlarm(world.rabbitmq, false) };
    },
  },
  {
    name: 'exchange-deleted',
    subject: 'rabbitmq',
    what: 'the exchange is deleted with all its bindings; healed by binding again',
    unbinds: true,
    missing,
    strike: async (stage) => {
      const { world } = stage;
      await world.withChannel((channel) => channel.deleteExchange(world.exchange));
      return { replicas: [], heal: () => subscriberOf(stage).bind() };
    },
  },
  {
    name: 'queue-deleted',
    subject: 'rabbitmq',
    what: "another subscriber's queue is deleted under load; ours is unbound, emptied and then deleted",
    unbinds: true,
    missing,
    strike: async (stage, { forMs }) => {
      const { world } = stage;
      const subscriber = subscriberOf(stage);
      const other = otherQueue();
      await world.withChannel(async (channel) => {
        await channel.assertQueue(other, { durable: true, arguments: { 'x-queue-type': 'quorum' } });
        await channel.bindQueue(other, world.exchange, 'job.#');
        await new Promise((resolve) => setTimeout(resolve, forMs / 4)); // while publishes to it are in flight
        await channel.deleteQueue(other);
      });
      await subscriber.deleteQueue();
      return { replicas: [], heal: () => subscriber.bind() };
    },
  },
  {
    name: 'queue-unbound',
    subject: 'rabbitmq',
    what: "the subscriber's queue is unbound, so no queue receives the events",
    unbinds: true,
    missing,
    strike: async (stage) => {
      const subscriber = subscriberOf(stage);
      await subscriber.unbind();
      return { replicas: [], heal: () => subscriber.bind() };
    },
  },
  {
    name: 'reject-publish',
    subject: 'rabbitmq',
    what: "another subscriber's full queue refuses messages, so that publishes are nacked",
    strike: async ({ world }) => {
      const full = otherQueue();
      await world.withChannel(async (channel) => {
        await channel.assertQueue(full, {
          durable: true,
          maxLength: 1,
          arguments: { 'x-overflow': 'reject-publish' },
        });
        await channel.bindQueue(full, world.exchange, 'job.#');
      });
      return {
        replicas: [],
        heal: () => world.withChannel(async (channel) => void (await channel.deleteQueue(full))),
      };
    },
  },
];
