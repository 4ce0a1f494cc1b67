// Entries of the outbox as the API shows them, and the conditions that its list, its groups and decisions select them by.

import { type Kysely, type RawBuilder, sql } from 'kysely';
import { eventId, type Status } from '../../event/index.ts';
import { type Database, type OutboxState, timeText } from '../../ledger/index.ts';
import type { Entry } from '../contract/outbox.ts';
import { sourcesIn } from './filters.ts';

/** Of `outbox o`. */
export const columns = sql`o.sequence as id, o.source, o.job_id, o.status, o.progress_percentage, o.state, o.attempts,
  ${timeText('o.due_at')} as due_at, ${timeText('o.recorded_at')} as recorded_at, o.last_error, o.replay_id, o.queue`;

export type EntryRow = Omit<Entry, 'event_id'> & { status: Status; progress_percentage: number | null };

export function toEntry({ status, progress_percentage: progress, ...row }: EntryRow): Entry {
  return { ...row, event_id: eventId(row.source, { jobId: row.job_id, status, progress }) };
}

/** Undefined is any state. */
export function inState(state: OutboxState | undefined): RawBuilder<unknown> {
  // As the predicates of the partial indexes are written.
  if (state === 'pending') return sql`o.state = 'pending'`;
  return state === undefined ? sql`true` : sql`o.state = ${sql.lit(state)} and o.state <> 'pending'`;
}

/** Undefined is copies and live entries. */
export function ofKind(copies: boolean | undefined): RawBuilder<unknown> {
  if (copies === undefined) return sql`true`;
  return copies ? sql`o.replay_id is not null` : sql`o.replay_id is null`;
}

export function ofSources(sources: readonly string[] | null): RawBuilder<unknown> {
  return sources === null ? sql`true` : sql`o.source = any(${sources}::text[])`;
}

/** No index serves it. Undefined is any value. */
export function has(column: 'last_error' | 'queue', value: string | undefined): RawBuilder<unknown> {
  return value === undefined ? sql`true` : sql`${sql.ref(`o.${column}`)} = ${value}`;
}

/** The CTE `of_job`: the numbers of a job's events, which are those of their entries (events_dedup_key). */
export const ofJobCte = (jobId: string, sources: readonly string[] | null): RawBuilder<unknown> => sql`
  s (source) as materialized (${sourcesIn('events', sources)}),
  of_job as materialized (
    select e.sequence from s cross join lateral (
      select e.sequence from events e where e.source = s.source and e.job_id = ${jobId}) e)`;

/** The entry with this number, digits of a 64-bit one. Undefined if there is none. */
export async function findEntry(db: Kysely<Database>, id: string): Promise<Entry | undefined> {
  const [entry] = await readEntriesNamed(db, [id]);
  return entry;
}

/** The entries with these numbers (primary key), the lowest first. */
export async function readEntriesNamed(db: Kysely<Database>, ids: readonly string[]): Promise<Entry[]> {
  const { rows } = await sql<EntryRow>`
    select ${columns} from outbox o where o.sequence = any(${ids}::bigint[]) order by o.sequence`.execute(db);
  return rows.map(toEntry);
}
