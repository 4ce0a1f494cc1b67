// The list of publications: the result of each attempt to publish an event. A publication names its event by the sequence
// alone, so a job's publications are found through its events.

import { type Kysely, sql } from 'kysely';
import { eventId, parseEventId, type Status } from '../../event/index.ts';
import { type Database, timeText } from '../../ledger/index.ts';
import type { Publication, publicationFilters } from '../contract/publications.ts';
import type { Condition } from './access-path.ts';
import {
  byColumn,
  bySources,
  type Filter,
  type FilterTable,
  hasPrefix,
  type Scoped,
  sourcesIn,
} from './filters.ts';
import { createList, type List, questionOf } from './lists.ts';
import type { ListSpec } from './scan.ts';

export type PublicationFilters = Scoped<typeof publicationFilters>;

type PublicationRow = Omit<Publication, 'event_id'> & {
  event_sequence: string;
  event_status: Status;
  event_progress: number | null;
};

/** Each is looked up in every partition: 200 events in those of 40 days take some 20 ms. */
const EVENTS_MAX = 200;

// Events are kept for good, publications for a while.
const complete = {
  columns: sql`page.*, e.source, e.job_id, e.status as event_status, e.progress_percentage as event_progress`,
  joins: sql`join events e on e.sequence = page.event_sequence`,
};

const columns = sql`t.id, ${timeText('t.published_at')} as published_at, t.event_sequence, t.attempt, t.result, t.detail,
  t.duration_ms, t.relay_id, t.replay_id, t.queue`;

const spec: ListSpec<PublicationRow> = {
  table: 'publications',
  row: sql`t.id, t.published_at, t.event_sequence, t.attempt, t.result, t.detail, t.duration_ms, t.relay_id,
    t.replay_id, t.queue, t.source`,
  columns,
  time: 'published_at',
  ties: [{ column: 'id', type: 'bigint' }],
  complete,
};

/** Where the filters of `publications` become SQL, and by which index. */
const publicationTable: FilterTable<PublicationFilters> = {
  event_id: (id, { sources }) => ofEvent(id, sources),
  // A job has few events of one source, but many sources may have a job of this id.
  job_id: (jobId, { sources }) => ofEvents(sql`e.job_id = ${jobId}`, { sources, atMost: EVENTS_MAX }),
  job_id_prefix: (prefix, { sources }) =>
    ofEvents(hasPrefix('e.job_id', prefix), { sources, atMost: EVENTS_MAX }),
  // Index publications_replay.
  replay_id: (id) => byColumn('replay_id', id, { type: 'uuid', only: sql`t.replay_id is not null` }),
  // Index publications_result.
  result: (result) =>
    byColumn('result', result, { usual: ['confirmed'], only: sql`t.result <> 'confirmed'` }),
  // Index publications_source.
  sources: bySources,
};

export const publications: List<PublicationFilters, Publication> = createList(spec, {
  toQuestion: questionOf(publicationTable),
  toItem: toPublication,
});

/** Text that is no event's id finds nothing. */
function ofEvent(id: string, sources: readonly string[] | null): Filter {
  const key = parseEventId(id);
  if (key === undefined) return ofEvents(sql`false`, { sources: [] });
  return ofEvents(
    sql`e.job_id = ${key.jobId} and e.status = ${key.status}
      and e.progress_percentage is not distinct from ${key.progress}::smallint`,
    { sources: sources?.filter((name) => name === key.source) ?? [key.source] },
  );
}

/**
 * Finds the events that meet the condition by events_dedup_key, and their publications by publications_event. `atMost`: if
 * there are more events, another path is taken.
 */
function ofEvents(
  condition: Condition,
  { sources, atMost }: { sources: readonly string[] | null; atMost?: number },
): Filter {
  const found = sql`
    select e.sequence from (${sourcesIn('events', sources)}) s (source) cross join lateral (
      select e.sequence from events e where e.source = s.source and ${condition}
      order by e.job_id ${atMost === undefined ? sql`` : sql`limit ${atMost + 1}`}) e`;
  return {
    condition: sql`exists (
      select from events e where e.sequence = t.event_sequence and ${condition}
        and ${sources === null ? sql`true` : sql`e.source = any(${sources}::text[])`})`,
    path: {
      only: sql`t.event_sequence = any(array(${found}))`,
      sorted: { by: ['event_sequence'], ...(atMost !== undefined && { onlyIf: { rows: found, atMost } }) },
    },
  };
}

function toPublication(row: PublicationRow): Publication {
  const { event_sequence: _, event_status: status, event_progress: progress, ...shown } = row;
  return { ...shown, event_id: eventId(row.source, { jobId: row.job_id, status, progress }) };
}

/** The publications of these events (index publications_event), oldest first, from behind the place (time, id). */
export async function readPublicationsOf(
  db: Kysely<Database>,
  sequences: readonly string[],
  { after, limit }: { after: { at: string; id: string }; limit: number },
): Promise<Publication[]> {
  const { rows } = await sql<PublicationRow>`
    with few as materialized (
      select ${spec.row} from publications t
      where t.event_sequence = any(${sequences}::bigint[]) and t.published_at >= ${after.at}::timestamptz),
    page as materialized (
      select ${columns} from few t
      where (t.published_at, t.id) > (${after.at}::timestamptz, ${after.id}::bigint)
      order by t.published_at, t.id limit ${limit})
    select ${complete.columns} from page ${complete.joins} order by page.published_at, page.id::bigint`.execute(
    db,
  );
  return rows.map(toPublication);
}

/** The publications with these ids and times (index publications_time), in the order of their time. */
export async function readPublicationsNamed(
  db: Kysely<Database>,
  keys: readonly { readonly id: string; readonly at: string }[],
): Promise<Publication[]> {
  const { rows } = await sql<PublicationRow>`
    with page as materialized (
      select ${columns} from (
        select ${spec.row}
        from unnest(${keys.map(({ id }) => id)}::bigint[], ${keys.map(({ at }) => at)}::timestamptz[]) as k (id, at)
        join publications t on t.id = k.id and t.published_at = k.at
      ) t)
    select ${complete.columns} from page ${complete.joins} order by page.published_at, page.id::bigint`.execute(
    db,
  );
  return rows.map(toPublication);
}
