// What the API shows: the items of its lists, as they stand in answers and in the OpenAPI document. They say what is
// shown and nothing of where it comes from; what an answer holds beside is not shown.

import { z } from 'zod';

/** RFC 3339 in UTC with up to six digits of a second: as exact as Postgres keeps it. */
export const timestamp = z.iso.datetime();
/** A 64-bit number: JavaScript's cannot hold them all. */
export const digits = z.string().regex(/^\d{1,19}$/);

export const outcome = z.enum([
  'accepted',
  'duplicate',
  'conflict',
  'quarantined',
  'malformed',
  'unauthorized',
  'refused',
]);
export const eventStatus = z.enum(['processing', 'completed', 'failed']);
export const kind = z.enum(['progress', 'completed', 'failed']);
export const publicationResult = z.enum(['confirmed', 'returned', 'nacked', 'failed']);
export const outboxState = z.enum(['pending', 'returned', 'parked']);

const percentage = z.int().min(0).max(100).nullable();

export const Delivery = z
  .object({
    id: z.uuid(),
    received_at: timestamp,
    source: z.string(),
    outcome,
    http_status: z.int().describe('What the sender was answered.'),
    reason: z.string().nullable(),
    job_id: z.string().nullable(),
    status: z.string().nullable().describe('As it was sent: it may be one that we do not know.'),
    progress_percentage: percentage,
    error_code: z.string().nullable(),
    event_id: z.string().nullable().describe('The event that it told us, or was a copy of.'),
    path: z.string(),
    remote_address: z
      .string()
      .nullable()
      .describe('Who sent it. Through a trusted proxy: who that says it was.'),
    peer_address: z
      .string()
      .nullable()
      .describe('The trusted proxy that it came through; null where the sender connected itself.'),
    secret_fingerprint: z.string().nullable().describe('Names the signing secret that matched.'),
    body_bytes: z.int().nullable(),
    body_kept: z.boolean(),
    released_at: timestamp
      .nullable()
      .describe('When an operator had a quarantined one understood after all.'),
  })
  .meta({ id: 'Delivery', description: 'One inbound request.' });

export const DeliveryDetail = Delivery.extend({
  headers: z.record(z.string(), z.unknown()),
  body_sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .nullable(),
}).meta({ id: 'DeliveryDetail', description: 'One inbound request, with its headers.' });

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
    repeats: z.int().describe('How many more deliveries told the same.'),
    publication: z
      .enum(['done', 'pending', 'returned', 'parked'])
      .describe('`done`: it is no longer in the outbox.'),
  })
  .meta({ id: 'Event', description: 'The fact that a delivery told us, once.' });

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

export const EventDetail = Event.extend({
  publications: z.array(Publication).max(100).describe('The newest ones first.'),
}).meta({ id: 'EventDetail', description: 'An event with its publications.' });

export const Job = z
  .object({
    source: z.string(),
    job_id: z.string(),
    state: eventStatus,
    highest_progress: z.int().nullable(),
    first_seen_at: timestamp,
    last_seen_at: timestamp,
    completed_at: timestamp.nullable(),
    failed_at: timestamp.nullable(),
    terminal_at: timestamp.nullable(),
    duration_ms: z.int().nullable().describe('From when we first saw it to its end.'),
  })
  .meta({ id: 'Job', description: 'What we know of a job by its deliveries.' });

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
    replay_id: z.uuid().nullable(),
    queue: z.string().nullable(),
  })
  .meta({ id: 'Entry', description: 'An event, or a replay’s copy of one, still to be published.' });

export const ReplaySkip = z
  .object({ replay_id: z.uuid(), event_id: z.string(), reason: z.string() })
  .meta({ id: 'ReplaySkip', description: 'An event that a replay left out.' });

const OperatorAction = z
  .object({ action: z.string(), actor: z.string(), subject: z.string() })
  .meta({ id: 'OperatorAction', description: 'What an operator did with a delivery or an event.' });

export const replayState = z.enum(['running', 'paused', 'cancelled', 'finished']);

const ReplayOfJob = z
  .object({
    id: z.uuid(),
    state: replayState.describe('As it is while you look.'),
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

const moment = {
  at: timestamp,
  after_ms: z.int().nullable().describe('Since the item before; null for the first.'),
};
export const StoryItem = z
  .discriminatedUnion('what', [
    z.object({ ...moment, what: z.literal('delivery'), delivery: Delivery }),
    z.object({ ...moment, what: z.literal('event'), event: Event }),
    z.object({ ...moment, what: z.literal('operator'), operator: OperatorAction }),
    z.object({ ...moment, what: z.literal('replay'), replay: ReplayOfJob }),
    z.object({ ...moment, what: z.literal('replay_skip'), skip: ReplaySkip }),
    z.object({ ...moment, what: z.literal('publication'), publication: Publication }),
    z.object({ ...moment, what: z.literal('waiting'), entry: Entry }),
  ])
  .meta({
    id: 'StoryItem',
    description: 'One step of a job’s story. `waiting` is what is in the outbox while you look.',
  });

/** A page of a list. */
export function page<T extends z.ZodType>(item: T) {
  return z.object({
    items: z.array(item),
    next_cursor: z
      .string()
      .nullable()
      .describe(
        'For the page after this one; null where there is none. A page may be short, or empty, before.',
      ),
  });
}

export type Delivery = z.infer<typeof Delivery>;
export type DeliveryDetail = z.infer<typeof DeliveryDetail>;
export type Event = z.infer<typeof Event>;
export type Publication = z.infer<typeof Publication>;
export type Job = z.infer<typeof Job>;
export type Entry = z.infer<typeof Entry>;
export type StoryItem = z.infer<typeof StoryItem>;
