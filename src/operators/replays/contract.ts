// Replays: the fields that the API shows, also of a dry run and in a job's story, and the filters of their list.

import { z } from 'zod';
import { Event } from '../events/contract.ts';
import { columnsOf } from '../kernel/list/columns.contract.ts';
import { timestamp } from '../kernel/list/fields.contract.ts';
import { stateFilter } from '../kernel/list/filters.contract.ts';
import { ReplayFilter, replayRate } from './order.contract.ts';

export const SKIPS_SHOWN_MAX = 100;
export const REPLAY_SAMPLE_MAX = 10;

const replayState = z.enum(['running', 'paused', 'cancelled', 'finished']);

export const ReplaySkip = z
  .object({ replay_id: z.uuid(), event_id: z.string(), reason: z.string() })
  .meta({ id: 'ReplaySkip', description: 'An event that a replay left out.' });

/** What the filter looks like where it is shown again. */
const shownFilter = z.object(ReplayFilter.shape).partial();

const count = z.int().min(0);
const matchedExactly = z
  .boolean()
  .describe('False while there may be more: the count stops early for large numbers. True at the end.');

export const Replay = z
  .object({
    id: z.uuid(),
    state: replayState,
    paused_because: z.string().nullable(),
    created_at: timestamp,
    created_by: z.string().describe('The name of the token.'),
    note: z.string().nullable(),
    event_ids: z.array(z.string()).nullable(),
    filter: shownFilter.nullable(),
    queue: z.string().nullable().describe('Null: to the exchange.'),
    rate_per_second: replayRate,
    counts: z.object({
      matched: count.describe('Events that matched when it was made; see `matched_exactly`.'),
      queued: count.describe('Copies put into the outbox.'),
      confirmed: count.describe('Copies that the broker confirmed.'),
      returned: count.describe('Copies that no queue received.'),
      failed: count.describe('Copies that failed at every attempt.'),
      skipped: count.describe('Events left out; see `skips`.'),
    }),
    matched_exactly: matchedExactly,
    updated_at: timestamp,
    finished_at: timestamp.nullable(),
  })
  .meta({ id: 'Replay', description: 'Events that are published again, with their original ids.' });

export const ReplayDetail = Replay.extend({
  skips: z.array(ReplaySkip).max(SKIPS_SHOWN_MAX).describe('The first ones.'),
}).meta({ id: 'ReplayDetail', description: 'A replay, with what it left out.' });

/** Undefined where nothing is to be said. The same words wherever a replay is ordered. */
export function queueNotice(queue: string, state: string | null | undefined): string | undefined {
  if (state === 'missing') return `there is no queue ${queue}: a replay to it is refused`;
  if (state === 'unknown')
    return `RabbitMQ did not say whether there is a queue ${queue}: without one, the replay pauses`;
  return undefined;
}

export const ReplayPreview = z
  .object({
    matched: count,
    matched_exactly: matchedExactly,
    matched_before: timestamp
      .nullable()
      .describe(
        'Put it into the filter of the order, as `to`: no event that came later is published. Null with `event_ids`.',
      ),
    sample: z
      .array(Event)
      .max(REPLAY_SAMPLE_MAX)
      .describe('The first ones, in the order of their acceptance; of those that were counted.'),
    queue_state: z
      .enum(['exists', 'missing', 'unknown'])
      .nullable()
      .describe(
        'Whether RabbitMQ has the queue now. `missing`: the replay would be refused. `unknown`: RabbitMQ is away, or did not answer soon. Null without `queue`.',
      ),
  })
  .meta({ id: 'ReplayPreview', description: 'What a replay would publish.' });

export const replayFilters = { state: stateFilter(replayState) };

export const ReplayOfJob = z
  .object({
    id: z.uuid(),
    state: replayState.describe('The present state.'),
    created_by: z.string().describe('The name of the token.'),
    note: z.string().nullable(),
    queue: z.string().nullable().describe('Null: to the exchange.'),
    created_at: timestamp,
    finished_at: timestamp.nullable(),
    duration_ms: z
      .int()
      .nullable()
      .describe('From its creation to its end, with all that it published; null before its end.'),
  })
  .meta({ id: 'ReplayOfJob', description: 'A replay that published or left out events of the job.' });

/** What was not confirmed of a replay's events: `2 returned, 1,200 skipped`. */
const othersOf = ({ counts }: z.infer<typeof Replay>): string =>
  (['returned', 'failed', 'skipped'] as const)
    .filter((name) => counts[name] > 0)
    .map((name) => `${counts[name].toLocaleString('en-US')} ${name}`)
    .join(', ');

export const replayColumns = columnsOf<z.infer<typeof Replay>>()({
  created_at: { head: 'created (UTC)', look: 'time' },
  created_by: { head: 'by', look: 'name' },
  state: { head: 'state', look: 'word' },
  matched: { head: 'matched', look: 'count', of: ({ counts }) => counts.matched },
  confirmed: { head: 'confirmed', look: 'count', of: ({ counts }) => counts.confirmed },
  others: { head: 'others', look: 'text', of: othersOf },
  queue: { head: 'queue', look: 'text', of: ({ queue }) => queue ?? 'the exchange' },
  note: { head: 'note', look: 'text' },
  id: { head: 'id', look: 'id', only: 'terminals' },
});
