// Finds events by their ids.

import { type Kysely, sql } from 'kysely';
import { eventId, parseEventId, type Status } from '../../event/index.ts';
import type { Database } from '../../ledger/index.ts';

export type FoundEvent = { readonly id: string; readonly sequence: string; readonly source: string };

/** The events with these ids (events_dedup_key), in the order of their acceptance. */
export async function findEvents(db: Kysely<Database>, ids: readonly string[]): Promise<FoundEvent[]> {
  const keys = [...new Set(ids)].flatMap((id) => {
    const key = parseEventId(id);
    return key === undefined ? [] : [key];
  });
  const { rows } = await sql<{
    sequence: string;
    source: string;
    jobId: string;
    status: Status;
    progress: number | null;
  }>`
    select e.sequence, e.source, e.job_id as "jobId", e.status, e.progress_percentage as progress
    from unnest(
      ${keys.map((key) => key.source)}::text[], ${keys.map((key) => key.jobId)}::text[],
      ${keys.map((key) => key.status)}::text[], ${keys.map((key) => key.progress)}::smallint[]
    ) as k (source, job_id, status, progress)
    join events e on e.source = k.source and e.job_id = k.job_id and e.status = k.status
      and e.progress_percentage is not distinct from k.progress
    order by e.sequence`.execute(db);
  return rows.map((row) => ({ id: eventId(row.source, row), sequence: row.sequence, source: row.source }));
}
