// The body that orders a replay: which events to publish again, and how.

import { z } from 'zod';
import { SEEN_ONLY, SEEN_ONLY_FAULT } from '../../base/text/invisible-characters.ts';
import { deliveryFilters } from '../deliveries/contract.ts';
import { eventFilters } from '../events/contract.ts';
import { documented } from '../kernel/list/fields.contract.ts';
import { eventIdText, note, plain } from '../kernel/list/filters.contract.ts';

export const REPLAY_EVENT_IDS_MAX = 1_000;
/** Copies a second. */
export const REPLAY_RATE_MAX = 1_000;
export const REPLAY_RATE_DEFAULT = 100;
/** AMQP's limit of a routing key, which a queue's name is here. */
const QUEUE_MAX_BYTES = 255;
/** `default:job_7f3a:completed`, `default:job_7f3a:processing:45`; a job's id may hold colons. */
const EVENT_ID = /^[^:]+:.+:(?:completed|failed|processing:\d{1,3})$/;

const { secret_fingerprint, remote_address } = deliveryFilters;
/** Which events, by what they are and by the delivery that reported them. */
export const replayEventFilters = { ...eventFilters, secret_fingerprint, remote_address };

export const ReplayFilter = z
  .strictObject({
    ...eventFilters,
    late: z.boolean().optional(),
    secret_fingerprint: secret_fingerprint.describe('Of the delivery that reported the event.'),
    remote_address: remote_address.describe('Of the delivery that reported the event.'),
  })
  .refine(
    (filter) => Object.values(filter).some((value) => value !== undefined),
    'must name something: without a filter it would be every event there is',
  )
  .meta({
    id: 'ReplayFilter',
    description: 'As in the list of events. At least one of them.',
    ...documented({ minProperties: 1 }),
  });

const eventId = eventIdText
  .regex(EVENT_ID, 'must be the id of an event, as default:job_7f3a:completed')
  .meta(documented({ pattern: EVENT_ID.source }));

export const queueName = plain(QUEUE_MAX_BYTES)
  .refine((name) => Buffer.byteLength(name) <= QUEUE_MAX_BYTES, `must be at most ${QUEUE_MAX_BYTES} bytes`)
  .refine((name) => SEEN_ONLY.test(name), SEEN_ONLY_FAULT)
  .refine((name) => !name.startsWith('amq.rabbitmq.'), 'is one of the broker’s own')
  .describe('Only to this queue, and not to the exchange. It must exist.');

export const replayRate = z.int().min(1).max(REPLAY_RATE_MAX);

export const ReplayOrder = z
  .strictObject({
    event_ids: z.array(eventId).min(1).max(REPLAY_EVENT_IDS_MAX).optional(),
    filter: ReplayFilter.optional(),
    queue: queueName.optional(),
    rate_per_second: replayRate
      .default(REPLAY_RATE_DEFAULT)
      .describe('At most so many copies a second, evenly spread.'),
    note: note.optional().describe('The reason, which is shown with the replay.'),
    dry_run: z.boolean().default(false).describe('Shows what would be published, and publishes nothing.'),
  })
  .refine(
    ({ event_ids: ids, filter }) => (ids === undefined) !== (filter === undefined),
    'exactly one of event_ids and filter must be given',
  )
  .meta({
    id: 'ReplayOrder',
    description: 'What to publish again, and how.',
    ...documented({ oneOf: [{ required: ['event_ids'] }, { required: ['filter'] }] }),
  });

export type ReplayOrder = z.input<typeof ReplayOrder>;
