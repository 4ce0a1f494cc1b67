// Puts rows into the outbox's tables by hand, in the form in which the intake, the relay and the feeder leave them.

import type { TestDatabase } from './database.ts';
import { newJobId } from './sender.ts';

/** The numbers `from`, `from` + 1, … and what they have in common. */
type Rows = {
  readonly from: number;
  /** 1, if not given. */
  readonly count?: number;
  readonly source?: string;
  /** Number `n` is recorded `n` seconds later. A day ago, if not given. */
  readonly begin?: Date;
};
type Held = Rows & {
  readonly state: 'pending' | 'returned' | 'parked';
  readonly attempts?: number;
  readonly error?: string;
};

const valuesOf = ({ from, count = 1, source = 'default', begin }: Rows): unknown[] => [
  from,
  count,
  source,
  begin ?? new Date(Date.now() - 24 * 60 * 60 * 1_000),
];

/** With `$1` to `$4` of `valuesOf`. */
const NUMBERS = `
  select n, $3::text as source, 'job_' || n as job_id, $4::timestamptz + n * interval '1 second' as at
  from generate_series($1::bigint, $1 + $2 - 1) as n`;

/**
 * The event `n` is that of `job_n`, completed. It has no delivery, so no body.
 * @param rows.batchOf so many are recorded at the same time, that of the first of them
 */
export async function insertEvents(
  database: TestDatabase,
  { batchOf = 1, ...rows }: Rows & { readonly batchOf?: number },
): Promise<void> {
  await database.query(
    `insert into events (sequence, source, job_id, status, late, recorded_at, delivery_id, content_hash, repeats)
       overriding system value
     select n, source, job_id, 'completed', false, at - (n - $1) % $5 * interval '1 second', gen_random_uuid(), '', 0
     from (${NUMBERS}) as numbers`,
    [...valuesOf(rows), batchOf],
  );
}

/** The jobs of such events. */
export async function insertJobs(database: TestDatabase, rows: Rows): Promise<void> {
  await database.query(
    `insert into jobs (source, job_id, first_seen_at, last_seen_at, completed_at, last_status)
     select source, job_id, at, at, at, 'completed' from (${NUMBERS}) as numbers`,
    valuesOf(rows),
  );
}

/** Such events, which wait in batches of the outbox for their first attempt: those of one time together. */
export async function insertPending(
  database: TestDatabase,
  rows: Rows & { readonly batchOf?: number },
): Promise<void> {
  await insertEvents(database, rows);
  await database.query(
    `insert into outbox_batches (first, sequences, bytes, recorded_at)
     select min(sequence), array_agg(sequence order by sequence), 500 * count(*), recorded_at from events
     where sequence between $1 and $1 + $2 - 1 group by recorded_at`,
    [rows.from, rows.count ?? 1],
  );
}

/** Held entries, with content of their own: of `job_n`, without their events. Their jobs are held, except behind returned ones. */
export async function insertHeld(database: TestDatabase, rows: Held): Promise<void> {
  const { state, attempts = state === 'pending' ? 0 : 1, error = null } = rows;
  await database.query(
    `insert into outbox_held (sequence, source, job_id, status, late, recorded_at, data, state, attempts, last_error)
     select n, source, job_id, 'completed', false, at, '{}', $5, $6, $7 from (${NUMBERS}) as numbers`,
    [...valuesOf(rows), state, attempts, error],
  );
  if (state === 'returned') return;
  await database.query(
    `insert into jobs (source, job_id, first_seen_at, last_seen_at, completed_at, last_status, is_held, hold_version)
     select source, job_id, at, at, at, 'completed', true, 1 from (${NUMBERS}) as numbers
     on conflict (source, job_id) do update set is_held = true, hold_version = jobs.hold_version + 1`,
    valuesOf(rows),
  );
}

/** Copies of the event 1, each of a replay of its own. */
export async function insertCopies(
  database: TestDatabase,
  rows: Rows & { readonly state: 'pending' | 'returned'; readonly queue?: string; readonly error?: string },
): Promise<void> {
  const { state, queue = null, error = null } = rows;
  await database.query(
    `insert into replay_copies (position, replay_id, replay_of, replayed_by, queue, source, job_id, status, late, recorded_at,
                                data, state, attempts, last_error)
     select n, gen_random_uuid(), 1, 'a test', $5, source, job_id, 'completed', false, at, '{}', $6,
            case $6 when 'pending' then 0 else 1 end, $7
     from (${NUMBERS}) as numbers`,
    [...valuesOf(rows), queue, state, error],
  );
}

/** With its events and their jobs. */
export async function emptyOutbox(database: TestDatabase): Promise<void> {
  await database.query('truncate outbox_batches, outbox_held, replay_copies, events, jobs');
  await database.query('update outbox_version set version = 0');
}

/** An event whose entry stands in the outbox as the relay, or an operator, left it. A pending one is not due. */
export async function addWaiting(
  { database }: { readonly database: TestDatabase },
  state: 'pending' | 'returned' | 'parked',
  { job = newJobId(), source = 'default' }: { job?: string; source?: string } = {},
): Promise<{ position: string; id: string; job: string }> {
  const [row] = await database.query<{ sequence: string }>(
    `with event as (
       insert into events (source, job_id, status, late, recorded_at, delivery_id, content_hash, repeats)
       values ($3, $1, 'completed', false, now(), gen_random_uuid(), '', 0) returning *
     ),
     job as (
       insert into jobs (source, job_id, first_seen_at, last_seen_at, completed_at, last_status, is_held)
       select source, job_id, recorded_at, recorded_at, recorded_at, 'completed', $2 <> 'returned' from event
     )
     insert into outbox_held (sequence, source, job_id, status, late, recorded_at, data, state, attempts, last_error,
                              due_at)
     select sequence, source, job_id, status, late, recorded_at, '{}', $2, 20, 'a test',
            case $2 when 'pending' then now() + interval '1 hour' else now() end
     from event returning sequence`,
    [job, state, source],
  );
  return { position: row?.sequence ?? '', id: `${source}:${job}:completed`, job };
}
