// Publications: the fields that the API shows, and the filters of its list.

import { z } from 'zod';
import { columnsOf } from '../kernel/list/columns.contract.ts';
import { digits, publicationResult, timestamp } from '../kernel/list/fields.contract.ts';
import { eventIdText, filter, job, range, resultFilter, source } from '../kernel/list/filters.contract.ts';

export const Publication = z
  .object({
    id: digits,
    published_at: timestamp,
    event_id: z.string(),
    source: z.string(),
    job_id: z.string(),
    attempt: z.int(),
    result: publicationResult,
    detail: z.string().nullable(),
    duration_ms: z.int(),
    relay_id: z.uuid(),
    replay_id: z.uuid().nullable(),
    queue: z.string().nullable().describe('Set where a replay went to one queue and not to the exchange.'),
  })
  .meta({ id: 'Publication', description: 'One attempt to publish an event, and its result.' });

export const publicationFilters = {
  source,
  result: resultFilter,
  event_id: filter(eventIdText, { label: 'Event', option: 'event', takes: 'ID', help: 'only of this event' }),
  ...job,
  replay_id: filter(z.uuid(), {
    label: 'Replay',
    option: 'replay',
    takes: 'ID',
    help: 'only of this replay',
  }),
  ...range,
};

export type Publication = z.infer<typeof Publication>;

export const publicationColumns = columnsOf<Publication>()({
  published_at: { head: 'published (UTC)', look: 'time' },
  event_id: { head: 'event', look: 'name' },
  job_id: { head: 'job', look: 'name', only: 'pages' },
  attempt: { head: 'attempt', look: 'count', isMinor: true },
  result: { head: 'result', look: 'word' },
  duration_ms: { head: 'took', look: 'duration', isMinor: true },
  detail: { head: 'detail', look: 'text', isRare: true },
  queue: { head: 'queue', look: 'text', isRare: true },
  replay_id: { head: 'replay', look: 'id', isRare: true },
});
