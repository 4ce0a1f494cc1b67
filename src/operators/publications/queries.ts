// The list of publications: the result of each attempt to publish an event. Confirmed first attempts are packed, many in a row
// of publication_batches; each of the others has a row of its own. A publication names its event by the sequence alone, so
// a job's publications are found through its events.

import { type Kysely, type RawBuilder, sql } from 'kysely';
import { eventId, parseEventId, type Status } from '../../event/index.ts';
import type { Database } from '../../ledger/index.ts';
import type { Condition } from '../kernel/list/access-path.queries.ts';
import {
  byColumn,
  bySources,
  type Filter,
  type FilterTable,
  hasPrefix,
  type Scoped,
  sourcesIn,
} from '../kernel/list/filters.queries.ts';
import { createList, type List, questionOf } from '../kernel/list/list.queries.ts';
import type { RowKey } from '../kernel/list/new-rows.queries.ts';
import type { ListSpec } from '../kernel/list/range.queries.ts';
import { shownColumns } from '../kernel/list/shown-columns.queries.ts';
import type { Publication, publicationFilters } from './contract.ts';

export type PublicationFilters = Scoped<typeof publicationFilters>;

/** Joined to a page. */
type FromEvent = 'source' | 'job_id' | 'event_status' | 'event_progress';

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

const columns = shownColumns<Omit<PublicationRow, FromEvent>>({
  id: 'column',
  published_at: 'time',
  event_sequence: 'column',
  attempt: 'column',
  result: 'column',
  detail: 'column',
  duration_ms: 'column',
  relay_id: 'column',
  replay_id: 'column',
  queue: 'column',
});

const rowColumns = sql`t.id, t.published_at, t.event_sequence, t.attempt, t.result, t.detail, t.duration_ms, t.relay_id,
  t.replay_id, t.queue, t.source`;

const packed = {
  table: 'publication_batches',
  row: sql`t.id + u.place - 1 as id, t.published_at, u.event_sequence, 1 as attempt, 'confirmed' as result,
    null as detail, u.duration_ms, t.relay_id, null::uuid as replay_id, null as queue, t.source`,
  joins: sql`cross join lateral
    unnest(t.sequences, t.durations_ms) with ordinality as u (event_sequence, duration_ms, place)`,
} as const;

const spec: ListSpec<PublicationRow> = {
  table: 'publications',
  row: rowColumns,
  packed,
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
  replay_id: (id) =>
    notPacked(byColumn('replay_id', id, { type: 'uuid', only: sql`t.replay_id is not null` })),
  // Index publications_result.
  result: (result) =>
    notPacked(byColumn('result', result, { usual: ['confirmed'], only: sql`t.result <> 'confirmed'` })),
  // Indexes publications_source and publication_batches_source.
  sources: bySources,
};

export const publications: List<PublicationFilters, Publication> = createList(spec, {
  toQuestion: questionOf(publicationTable),
  toItem: toPublication,
});

const notPacked = ({ condition, path }: Filter): Filter => ({
  condition,
  ...(path && { path: { ...path, packed: null } }),
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
 * Finds the events that meet the condition by events_dedup_key, and their publications by publications_event and
 * publication_batches_first. `atMost`: if there are more events, another path is taken.
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
      packed: holdsOneOf(found),
      sorted: { by: ['event_sequence'], ...(atMost !== undefined && { onlyIf: { rows: found, atMost } }) },
    },
  };
}

/**
 * A packed row with a publication of one of these events, by publication_batches_first. An event is published at most once at
 * its first attempt, so the search for it ends where it is found. Most often that is the first row: the arrays of rows
 * that are written one after another interleave little.
 */
const holdsOneOf = (sequences: RawBuilder<unknown>): Condition => sql`t.first = any(array(
  select b.first from (${sequences}) e (sequence) cross join lateral (
    select b.first from publication_batches b
    where b.first between e.sequence >> 10 << 10 and e.sequence and e.sequence = any(b.sequences)
    order by b.first desc limit 1) b))`;

function toPublication(row: PublicationRow): Publication {
  const { event_sequence: _, event_status: status, event_progress: progress, ...shown } = row;
  return { ...shown, event_id: eventId(row.source, { jobId: row.job_id, status, progress }) };
}

/**
 * The publications of these events (indexes publications_event and publication_batches_first), oldest first, from behind the
 * place (time, id).
 */
export async function readPublicationsOf(
  db: Kysely<Database>,
  sequences: readonly string[],
  { after, limit }: { after: { at: string; id: string }; limit: number },
): Promise<Publication[]> {
  const { rows } = await sql<PublicationRow>`
    with few as materialized (
      select ${rowColumns} from publications t
      where t.event_sequence = any(${sequences}::bigint[]) and t.published_at >= ${after.at}::timestamptz
      union all
      select ${packed.row} from publication_batches t ${packed.joins}
      where ${holdsOneOf(sql`select unnest(${sequences}::bigint[])`)} and t.published_at >= ${after.at}::timestamptz
        and u.event_sequence = any(${sequences}::bigint[])),
    page as materialized (
      select ${columns} from few t
      where (t.published_at, t.id) > (${after.at}::timestamptz, ${after.id}::bigint)
      order by t.published_at, t.id limit ${limit})
    select ${complete.columns} from page ${complete.joins} order by page.published_at, page.id::bigint`.execute(
    db,
  );
  return rows.map(toPublication);
}

/** The publications with these keys (indexes publications_time and publication_batches_time), in the order of their time. */
export async function readPublicationsNamed(
  db: Kysely<Database>,
  keys: readonly RowKey[],
): Promise<Publication[]> {
  const { rows } = await sql<PublicationRow>`
    with k (id, at, skipped) as materialized (
      select * from unnest(${keys.map(({ id }) => id)}::bigint[], ${keys.map(({ at }) => at)}::timestamptz[],
        ${keys.map(({ skipped }) => skipped)}::int[])),
    page as materialized (
      select ${columns} from (
        select ${rowColumns} from k join publications t on t.id = k.id and t.published_at = k.at
        union all
        select ${packed.row} from k join publication_batches t on t.id = k.id and t.published_at = k.at ${packed.joins}
        where u.place > k.skipped
      ) t)
    select ${complete.columns} from page ${complete.joins} order by page.published_at, page.id::bigint`.execute(
    db,
  );
  return rows.map(toPublication);
}

/** The last publications of an event. */
export async function lastPublicationsOf(
  db: Kysely<Database>,
  id: string,
  limit: number,
): Promise<readonly Publication[]> {
  const { items } = await publications.read(db, { sources: null, event_id: id }, { after: null, limit });
  return items;
}
