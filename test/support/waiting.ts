// Fills the outbox and the quarantine with what waits for an operator, as many as a test wants.

import type { TestDatabase } from './database.ts';

type Entries = {
  readonly state: 'pending' | 'returned' | 'parked';
  /** The number of the first one; the others follow it. */
  readonly from: number;
  readonly count?: number;
  readonly source?: string;
  readonly error?: string;
  /** Copies of a replay, for this queue. */
  readonly queue?: string;
};

/** With their events. `job_7` of entry 7 is completed, and recorded seven seconds after the others' beginning. */
export async function seedEntries(database: TestDatabase, entries: Entries): Promise<void> {
  const { state, from, count = 1, source = 'default', error = '312 NO_ROUTE', queue = null } = entries;
  await database.query(
    `with event as (
       insert into events (sequence, source, job_id, status, late, recorded_at, delivery_id, content_hash, repeats)
         overriding system value
       select n, $3, 'job_' || n, 'completed', false, now() - interval '1 day' + n * interval '1 second',
              gen_random_uuid(), '', 0
       from generate_series($1::bigint, $1 + $2 - 1) as n returning *
     )
     insert into outbox (sequence, source, job_id, status, late, recorded_at, data, state, attempts, last_error, queue,
                         replay_id, replay_of, replayed_by)
     select sequence, source, job_id, status, late, recorded_at, '{}', $4, case $4 when 'pending' then 0 else 1 end,
            case $4 when 'pending' then null else $5 end, $6,
            case when $6::text is null then null else gen_random_uuid() end,
            case when $6::text is null then null else 1 end, case when $6::text is null then null else 'a test' end
     from event`,
    [from, count, source, state, error, queue],
  );
}

/** Deliveries in quarantine, a millisecond one after the other, up to now. Returns their ids, oldest first. */
export async function seedQuarantine(
  database: TestDatabase,
  of: { count?: number; source?: string; reason?: string } = {},
): Promise<string[]> {
  const { count = 1, source = 'default', reason = 'unknown status' } = of;
  const rows = await database.query<{ id: string }>(
    `insert into deliveries (id, received_at, source, outcome, http_status, reason, job_id, status, path, headers,
                             body_bytes, body)
     select gen_random_uuid(), greatest(date_trunc('day', now()), now() - ($1 - n) * interval '1 millisecond'), $2,
            'quarantined', 202, $3, 'job_' || n, 'paused', '/webhooks', '{}', 34,
            convert_to('{"job_id":"job_' || n || '","status":"paused"}', 'UTF8')
     from generate_series(1, $1::int) as n returning id, received_at`,
    [count, source, reason],
  );
  return rows.map(({ id }) => id);
}
