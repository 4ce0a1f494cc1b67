// The outbox: its entries and their counts, and the filters of its list. The orders for many: orders.contract.ts.

import { z } from 'zod';
import { columnsOf } from '../kernel/list/columns.contract.ts';
import { digits, outboxState, page, timestamp } from '../kernel/list/fields.contract.ts';
import {
  exactReason,
  filter,
  flag,
  job,
  plain,
  reasonFilter,
  source,
  stateFilter,
} from '../kernel/list/filters.contract.ts';

const EntryAhead = z
  .object({ id: digits, event_id: z.string(), state: outboxState })
  .meta({ id: 'EntryAhead', description: 'The event of the same job that has to leave the outbox first.' });

export const Entry = z
  .object({
    id: digits,
    event_id: z.string(),
    source: z.string(),
    job_id: z.string(),
    state: outboxState,
    attempts: z.int(),
    due_at: timestamp,
    recorded_at: timestamp,
    last_error: z.string().nullable(),
    waits_behind: EntryAhead.nullable()
      .optional()
      .describe(
        'Of a pending event: what it waits behind, whatever its `due_at`. Null if it waits for its own turn alone.',
      ),
    replay_id: z.uuid().nullable(),
    queue: z.string().nullable(),
  })
  .meta({ id: 'Entry', description: 'An event, or a replay’s copy of one, still to be published.' });

export const OutboxCounts = z.object({
  counts: z
    .object({
      pending: z.int().min(0),
      returned: z.int().min(0),
      parked: z.int().min(0),
    })
    .describe('Of events. `copies` counts the copies of replays.'),
  copies: z.int().min(0).describe('How many copies of replays there are, in any state.'),
  counts_complete: z
    .boolean()
    .describe(
      'False if there may be more: only the oldest 100,000 of each state are counted, over all sources.',
    ),
  oldest_pending_at: timestamp
    .nullable()
    .describe('When the oldest pending one was accepted. Null if none is among those counted.'),
});

export const OutboxPage = page(Entry)
  .extend(OutboxCounts.shape)
  .meta({ id: 'OutboxPage', description: 'What waits, and how much of it there is.' });

export const outboxFilters = {
  state: stateFilter(outboxState),
  source,
  job_id: job.job_id,
  reason: reasonFilter(exactReason.describe('Its `last_error`, word for word.')),
  queue: filter(plain(255).describe('Copies of replays that go to this queue alone, by its exact name.'), {
    label: 'Queue',
    option: 'queue',
    takes: 'NAME',
    help: "only replays' copies for this queue",
  }),
  // `outbox list` shows both.
  copies: filter(
    flag.describe('`true`: only the copies of replays. `false`: only events. Both where not given.'),
    { label: 'Replays’ copies' },
  ),
};

export type Entry = z.infer<typeof Entry>;

/** Of an entry, of this service or another version of it. */
type Waiting = Pick<Entry, 'source' | 'job_id' | 'last_error'> & {
  readonly state: string;
  readonly waits_behind?: { readonly event_id: string; readonly state: string } | null | undefined;
};

/** Without the source and the job, which stand beside it: `processing:45`. */
export function nameOfAhead({ waits_behind: ahead, ...entry }: Waiting): string {
  const id = ahead?.event_id ?? '';
  const prefix = `${entry.source}:${entry.job_id}:`;
  return id.startsWith(prefix) ? id.slice(prefix.length) : id;
}

/** Whether its next attempt may begin: a time in the past would look like one that was missed. */
export const isDue = ({ due_at: at }: Pick<Entry, 'due_at'>): boolean => Date.parse(at) <= Date.now();

/** Of a pending event without an error and with nothing before it in its job. */
const NOT_TRIED = 'not tried yet';

/** What it waits behind, or its last error. */
export function whyOf(entry: Waiting): string | null {
  const { waits_behind: ahead, last_error: error } = entry;
  if (ahead) return `waits for ${nameOfAhead(entry)}, which is ${ahead.state}`;
  return error ?? (entry.state === 'pending' ? NOT_TRIED : null);
}

export const entryColumns = columnsOf<Entry>()({
  recorded_at: { head: 'recorded (UTC)', look: 'time' },
  state: { head: 'state', look: 'word' },
  event_id: { head: 'event', look: 'name' },
  attempts: { head: 'attempts', look: 'count' },
  last_error: { head: 'why it waits', look: 'text', of: whyOf },
  queue: { head: 'queue', look: 'text', isRare: true },
  replay_id: { head: 'replay', look: 'id', isRare: true },
  id: { head: 'id', look: 'word', only: 'terminals' }, // orders take it, so it is never shortened
});
