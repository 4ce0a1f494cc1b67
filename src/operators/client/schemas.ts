// The API's answers, as far as a client relies on them; what it does not know passes through, so that a newer service
// loses nothing on the way. Times are RFC 3339 in UTC, numbers that may exceed 2^53 are strings of digits.

import { z } from 'zod';

const text = z.string().nullable();
const number = z.number().nullable();
const counts = z.record(z.string(), z.number());

export const jobSchema = z.looseObject({
  source: z.string(),
  job_id: z.string(),
  state: z.string(),
  highest_progress: number,
  first_seen_at: z.string(),
  last_seen_at: z.string(),
  completed_at: text,
  failed_at: text,
  terminal_at: text,
  duration_ms: number,
});

export const deliverySchema = z.looseObject({
  id: z.string(),
  received_at: z.string(),
  source: z.string(),
  outcome: z.string(),
  http_status: z.number(),
  reason: text,
  job_id: text,
  status: text,
  progress_percentage: number,
  error_code: text,
  event_id: text,
  path: z.string(),
  remote_address: text,
  peer_address: text.optional(),
  secret_fingerprint: text,
  body_bytes: number,
  body_kept: z.boolean(),
  released_at: text,
});

export const eventSchema = z.looseObject({
  id: z.string(),
  sequence: z.string(),
  source: z.string(),
  job_id: z.string(),
  status: z.string(),
  kind: z.string(),
  progress_percentage: number,
  error_code: text,
  late: z.boolean(),
  occurred_at: text,
  recorded_at: z.string(),
  delivery_id: z.string(),
  repeats: z.number(),
  publication: z.string(),
});

export const publicationSchema = z.looseObject({
  id: z.string(),
  published_at: z.string(),
  event_id: text,
  source: text,
  job_id: text,
  attempt: z.number(),
  result: z.string(),
  detail: text,
  duration_ms: z.number(),
  replay_id: text,
  queue: text,
});

export const entrySchema = z.looseObject({
  id: z.string(),
  event_id: z.string(),
  source: z.string(),
  job_id: z.string(),
  state: z.string(),
  attempts: z.number(),
  due_at: z.string(),
  recorded_at: z.string(),
  last_error: text,
  replay_id: text,
  queue: text,
});

export const replaySchema = z.looseObject({
  id: z.string(),
  state: z.string(),
  paused_because: text,
  created_at: z.string(),
  created_by: z.string(),
  note: text,
  queue: text,
  rate_per_second: z.number(),
  counts: z.looseObject({
    matched: z.number(),
    queued: z.number(),
    confirmed: z.number(),
    returned: z.number(),
    failed: z.number(),
    skipped: z.number(),
  }),
  matched_exactly: z.boolean(),
  updated_at: z.string(),
  finished_at: text,
});

export const logLineSchema = z.looseObject({
  id: z.string(),
  at: z.string(),
  actor: z.string(),
  role: z.string(),
  action: z.string(),
  source: text,
  subject: text,
  remote_address: text,
});

/** A replay, as far as a job's story tells of it. */
export const storyReplaySchema = z.looseObject({
  id: z.string(),
  state: z.string(),
  created_by: z.string(),
  note: text,
  queue: text,
  created_at: z.string(),
  finished_at: text,
  duration_ms: number,
});

export const storyItemSchema = z.looseObject({
  at: z.string(),
  what: z.string(),
  after_ms: number,
  replay: storyReplaySchema.optional(),
});

const percentiles = z.looseObject({ p50: z.number(), p90: z.number(), p99: z.number() }).nullable();

export const statsSchema = z.looseObject({
  from: z.string(),
  to: z.string(),
  step: z.number(),
  items: z.array(
    z.looseObject({
      at: z.string(),
      source: z.string(),
      deliveries: counts,
      answer_ms: percentiles,
      publications: counts,
      lag_ms: percentiles,
    }),
  ),
});

export const sourceSchema = z.looseObject({
  source: z.string(),
  configured: z.boolean(),
  last_delivery_at: text,
  rates: z.looseObject({ last_5m: z.number(), last_1h: z.number(), last_24h: z.number() }),
  secrets: z.array(
    z.looseObject({ fingerprint: z.string(), configured: z.boolean(), last_matched_at: text }),
  ),
  drift: z.array(
    z.looseObject({
      kind: z.string(),
      name: z.string(),
      status: z.string(),
      value_type: z.string(),
      count: z.number(),
      first_seen_at: z.string(),
      last_seen_at: z.string(),
      sample_delivery_id: z.string(),
    }),
  ),
  busiest_refused_addresses: z.array(z.looseObject({ address: z.string(), count: z.number() })).default([]),
});

export const releaseSchema = z.looseObject({
  delivery_id: z.string(),
  result: z.string(),
  event_id: text,
  reason: text,
});

export const dryRunSchema = z.looseObject({
  matched: z.number(),
  matched_exactly: z.boolean(),
  sample: z.array(eventSchema),
});

export const errorSchema = z.object({ error: z.string(), message: z.string() });

export type Job = z.infer<typeof jobSchema>;
export type Delivery = z.infer<typeof deliverySchema>;
export type Event = z.infer<typeof eventSchema>;
export type Publication = z.infer<typeof publicationSchema>;
export type Entry = z.infer<typeof entrySchema>;
export type Replay = z.infer<typeof replaySchema>;
export type LogLine = z.infer<typeof logLineSchema>;
export type StoryItem = z.infer<typeof storyItemSchema>;
export type StoryReplay = z.infer<typeof storyReplaySchema>;
export type Stats = z.infer<typeof statsSchema>;
export type Source = z.infer<typeof sourceSchema>;
export type Release = z.infer<typeof releaseSchema>;
export type DryRun = z.infer<typeof dryRunSchema>;
