// What the contract says by itself, since it imports no other room, is held against the room that knows it.

import { expect, test } from 'vitest';
import { eventId } from '../../../src/event/index.ts';
import { ReplayOrder } from '../../../src/operators/replays/order.contract.ts';

const isEventId = (id: string) => ReplayOrder.safeParse({ event_ids: [id] }).success;

test.for([
  { jobId: 'job_7f3a', status: 'completed', progress: null },
  { jobId: 'a:b:completed', status: 'failed', progress: null },
  { jobId: 'job_7f3a', status: 'processing', progress: 45 },
] as const)('an order of a replay takes the id of an event that is $status', (event) => {
  expect(isEventId(eventId('team-a', event))).toBe(true);
});

test.for([
  'job_7f3a',
  'default:job_7f3a',
  'default:job_7f3a:done',
  'default:job_7f3a:processing',
  ':a:failed',
])('an order of a replay refuses %j, which is no id of an event', (id) => expect(isEventId(id)).toBe(false));
