// Fills the outbox and the quarantine with what waits for an operator, as many as a test wants.

import type { TestDatabase } from './database.ts';
import { insertCopies, insertEvents, insertHeld, insertPending } from './outbox-rows.ts';

type Entries = {
  readonly state: 'pending' | 'returned' | 'parked';
  /** The number of the first one; the others follow it. */
  readonly from: number;
  readonly count?: number;
  readonly source?: string;
  readonly error?: string;
  /** Copies of a replay, for this queue. */
  readonly queue?: string;
  /** Of pending events: how many a batch has. */
  readonly batchOf?: number;
};

/** With their events. `job_7` of entry 7 is completed, and recorded seven seconds after the others' beginning. */
export async function seedEntries(database: TestDatabase, entries: Entries): Promise<void> {
  const { state, queue, error = '312 NO_ROUTE', batchOf, ...rows } = entries;
  if (queue === undefined && state === 'pending') {
    await insertPending(database, { ...rows, ...(batchOf && { batchOf }) });
    return;
  }
  await insertEvents(database, rows);
  if (queue === undefined) await insertHeld(database, { ...rows, state, error });
  else if (state === 'parked') throw new Error('a copy is never parked');
  else await insertCopies(database, { ...rows, state, queue, ...(state === 'returned' && { error }) });
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
