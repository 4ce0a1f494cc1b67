// The outbox as one table, for tests that look at it or wait for it; and events that are moved there by hand.

import type { TestDatabase } from './database.ts';

/** Takes events out of their batches and holds them, as the relay does when one fails. `columns` are set then. */
export async function hold(
  database: TestDatabase,
  columns: { readonly state?: 'pending' | 'returned' | 'parked'; readonly attempts?: number },
  which = 'true',
): Promise<void> {
  const { state = 'pending', attempts = 1 } = columns;
  await database.query(`
    with e as (
      select e.* from outbox_batches b join events e on e.sequence = any(b.sequences) where ${which}
    ),
    held as (
      insert into outbox_held (sequence, source, job_id, status, progress_percentage, late, recorded_at, state, attempts)
      select sequence, source, job_id, status, progress_percentage, late, recorded_at, '${state}', ${attempts} from e
    ),
    job as (
      update jobs j set is_held = true, hold_version = j.hold_version + 1 from e
      where j.source = e.source and j.job_id = e.job_id and '${state}' <> 'returned'
    )
    update outbox_batches b set sequences = array(
      select s from unnest(b.sequences) as s where s not in (select sequence from e) order by s)`);
  await database.query('delete from outbox_batches where cardinality(sequences) = 0');
  await database.query('update outbox_version set version = version + 1');
}

/** Used as a table in a statement: all entries, with null for what an entry of its kind does not have. */
export const OUTBOX = `(
  select s.sequence, e.source, e.job_id, e.status, e.progress_percentage, e.late, e.recorded_at, 'pending' as state,
         0 as attempts, e.recorded_at as due_at, null as last_error, null::uuid as replay_id, null::bigint as replay_of
  from outbox_batches b cross join unnest(b.sequences) as s (sequence) join events e on e.sequence = s.sequence
  union all
  select sequence, source, job_id, status, progress_percentage, late, recorded_at, state, attempts, due_at, last_error,
         null, null
  from outbox_held
  union all
  select position, source, job_id, status, progress_percentage, late, recorded_at, state, attempts, due_at, last_error,
         replay_id, replay_of
  from replay_copies
) as outbox`;
