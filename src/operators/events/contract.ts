// Events: the fields that the API shows, and the filters of its list.

import { z } from 'zod';
import { columnsOf } from '../kernel/list/columns.contract.ts';
import { digits, eventStatus, kind, percentage, timestamp } from '../kernel/list/fields.contract.ts';
import {
  errorCode,
  filter,
  flag,
  job,
  kindFilter,
  range,
  source,
  statusFilter,
} from '../kernel/list/filters.contract.ts';
import { Publication } from '../publications/contract.ts';

export const PUBLICATIONS_SHOWN_MAX = 100;

export const Event = z
  .object({
    id: z.string(),
    sequence: digits.describe('The order in which events were accepted.'),
    source: z.string(),
    job_id: z.string(),
    status: eventStatus,
    kind,
    progress_percentage: percentage,
    error_code: z.string().nullable(),
    late: z.boolean(),
    occurred_at: timestamp.nullable(),
    recorded_at: timestamp,
    delivery_id: z.uuid(),
    repeats: z.int().describe('How many more deliveries reported the same.'),
    publication: z
      .enum(['done', 'pending', 'returned', 'parked'])
      .describe('`done`: it is no longer in the outbox.'),
  })
  .meta({ id: 'Event', description: 'What a delivery reported, recorded once.' });

export const EventDetail = Event.extend({
  published_to: z
    .object({ exchange: z.string(), routing_key: z.string() })
    .optional()
    .describe(
      'Where its message goes, by the present configuration. A queue gets it that is bound for the key.',
    ),
  publications: z.array(Publication).max(PUBLICATIONS_SHOWN_MAX).describe('Newest first.'),
}).meta({ id: 'EventDetail', description: 'An event with its publications.' });

export const eventFilters = {
  source,
  status: statusFilter(eventStatus),
  kind: kindFilter,
  ...job,
  error_code: errorCode,
  late: filter(flag, { label: 'Late', option: 'late', help: 'only events that came late' }),
  ...range,
};

export type Event = z.infer<typeof Event>;
export type EventDetail = z.infer<typeof EventDetail>;

export const eventColumns = columnsOf<Event>()({
  recorded_at: { head: 'recorded (UTC)', look: 'time' },
  id: { head: 'event', look: 'name' },
  job_id: { head: 'job', look: 'name', only: 'pages' },
  kind: { head: 'kind', look: 'word' },
  late: { head: 'late', look: 'word', of: ({ late }) => (late ? 'late' : null), isRare: true },
  error_code: { head: 'error', look: 'text', isRare: true },
  repeats: {
    head: 'repeats',
    look: 'count',
    of: ({ repeats }) => repeats || null,
    isMinor: true,
    isRare: true,
  },
  publication: { head: 'on the bus', look: 'word' },
  delivery_id: { head: 'made by', look: 'id', only: 'pages' },
});
