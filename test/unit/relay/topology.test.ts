import { expect, test } from 'vitest';
import { routingKey } from '../../../src/event/index.ts';
import { topologyOf } from '../../../src/relay/topology.ts';

test('the broker must have one durable topic exchange, and queues are the subscribers’ own', () => {
  expect(topologyOf({ exchange: 'conversion.events' })).toEqual({
    exchange: { name: 'conversion.events', type: 'topic', durable: true },
  });
});

test('a routing key has the prefix, the kind and the source', () => {
  expect(routingKey('job', 'completed', 'team-a')).toBe('job.completed.team-a');
  expect(routingKey('eu.job', 'progress', 'default')).toBe('eu.job.progress.default');
});
