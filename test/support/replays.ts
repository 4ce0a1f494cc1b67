// What tests of replays need: events that were published long ago and have their bodies, the row of a replay, and a feeder
// that the test drives on a clock of its own.

import type { DatabaseConnection } from '../../src/ledger/sessions/database.ts';
import { createFeeder, type Feeder } from '../../src/operators/replays/feeder/feeder.ts';
import type { Replay } from '../../src/operators/replays/queries.ts';
import { createReplay } from '../../src/operators/replays/changes.queries.ts';
import { findEvents } from '../../src/operators/events/by-id.queries.ts';
import type { EventFilter } from '../../src/operators/replays/selection.queries.ts';
import { connectTestDatabase } from './relay.ts';
import { createTestLog } from './service.ts';
import type { TestDatabase } from './database.ts';

type Queryable = Pick<TestDatabase, 'query'>;

/**
 * Adds completed events of so many jobs with their deliveries, and no outbox entries. It is one statement, so 10,000 take a
 * second.
 */
const SEED = `
with job as (
  insert into jobs (source, job_id, first_seen_at, last_seen_at, completed_at, last_status)
  select $2, $3 || lpad(n::text, 6, '0'), now(), now(), now(), 'completed' from generate_series(1, $1::int) as n
  returning source, job_id
),
event as (
  insert into events (source, job_id, status, late, occurred_at, recorded_at, delivery_id, content_hash, repeats)
  select source, job_id, 'completed', false, '2026-01-15T10:35:00Z', now(), gen_random_uuid(), '', 0
  from job order by job_id returning *
),
body as (
  select event.*, convert_to(json_build_object(
    'job_id', job_id, 'status', 'completed', 'job_type', 'video', 'progress_percentage', 100,
    'cost_micros', 1250000, 'cost_cents', 125, 'processing_time_seconds', 42, 'output_size_bytes', 10485760,
    'input_format', 'mp4', 'output_format', 'webm',
    'created_at', '2026-01-15T10:30:00Z', 'completed_at', '2026-01-15T10:35:00Z'
  )::text, 'UTF8') as body from event
),
delivery as (
  insert into deliveries (
    id, received_at, source, outcome, http_status, job_id, status, event_sequence, path, remote_address, headers,
    secret_fingerprint, body_bytes, body
  )
  select delivery_id, recorded_at, source, 'accepted', 202, job_id, status, sequence, '/webhooks', '10.0.0.1', '{}',
         'abcd1234', length(body), body
  from body
)
select source || ':' || job_id || ':completed' as id from event order by sequence`;

/** Returns the event ids in the order of acceptance. `prefix` is that of the jobs' ids. */
export async function seedEvents(
  database: Queryable,
  count: number,
  { source = 'default', prefix = 'job_' }: { source?: string; prefix?: string } = {},
): Promise<string[]> {
  const rows = await database.query<{ id: string }>(SEED, [count, source, prefix]);
  return rows.map(({ id }) => id);
}

type ReplayOptions = { queue?: string; ratePerSecond?: number; sources?: string[]; createdBy?: string } & (
  | { filter: EventFilter }
  | { ids: readonly string[] }
);

/** Makes a replay as the API does. */
export async function newReplay(
  { db }: Pick<DatabaseConnection, 'db'>,
  options: ReplayOptions,
): Promise<Replay> {
  const made = await db.transaction().execute(async (trx) => {
    const selection =
      'filter' in options
        ? { filter: options.filter }
        : {
            event_ids: options.ids,
            sequences: (await findEvents(trx, options.ids)).map(({ sequence }) => sequence),
          };
    return createReplay(trx, {
      selection,
      sources: options.sources ?? null,
      queue: options.queue ?? null,
      ratePerSecond: options.ratePerSecond ?? 1_000,
      note: null,
      createdBy: options.createdBy ?? 'a test',
    });
  });
  if (made === 'too many') throw new Error('too many replays');
  return made;
}

/** As one whose queue went after it was ordered: the API refuses a queue that is not there. */
export async function replayToNobody(database: TestDatabase, options: ReplayOptions): Promise<Replay> {
  const connection = connectTestDatabase(database);
  try {
    return await newReplay(connection, { queue: 'nobody', ...options });
  } finally {
    await connection.close();
  }
}

export type TestFeeder = Feeder & {
  /** Sets the clock forward by so much, and runs one turn. */
  readonly after: (ms: number) => Promise<number>;
};

export function createTestFeeder(
  connection: Pick<DatabaseConnection, 'db' | 'execute'>,
  { isLeading = () => true }: { isLeading?: () => boolean } = {},
): TestFeeder {
  let clockMs = 0;
  const feeder = createFeeder({
    connection,
    isLeading,
    now: () => clockMs,
    log: createTestLog().log,
    onFed: () => {},
  });
  return {
    ...feeder,
    after: (ms) => {
      clockMs += ms;
      return feeder.runOnce();
    },
  };
}

/** The copies in the outbox, by position: of which event, and in which state. */
export function copiesInOutbox(
  database: Queryable,
): Promise<{ id: string; position: string; state: string; replay_id: string }[]> {
  return database.query(
    `select source || ':' || job_id || ':' || status || coalesce(':' || progress_percentage, '') as id,
            position, state, replay_id
     from replay_copies order by position`,
  );
}

export async function countsOf(database: Queryable, replayId: string): Promise<Record<string, number>> {
  const [row] = await database.query<{ counts: Record<string, number> }>(
    `select json_build_object('matched', matched, 'queued', queued, 'confirmed', confirmed, 'returned', returned,
                              'failed', failed, 'skipped', skipped) as counts
     from replays where id = $1`,
    [replayId],
  );
  return row?.counts ?? {};
}

export async function stateOf(
  database: Queryable,
  replayId: string,
): Promise<{ state: string; paused_because: string | null } | undefined> {
  const [row] = await database.query<{ state: string; paused_because: string | null }>(
    'select state, paused_because from replays where id = $1',
    [replayId],
  );
  return row;
}
