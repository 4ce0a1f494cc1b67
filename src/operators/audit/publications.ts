// The list of publications: what each attempt to publish an event came to. Publications name their event by its number
// alone, so a job's are found through its events.

import { type Kysely, sql } from 'kysely';
import {
  eventId,
  parseEventId,
  type Status,
  type Database,
  type PublicationResult,
  timeText,
} from '../../ledger/index.ts';
import { byColumn, bySources, byUnusual, prefixEnd } from './filters.ts';
import { type Filter, type List, type Question, readPage, typesOf } from './lists.ts';
import { sourcesCte, type Spec } from './scan.ts';

/** As the API shows it. */
export type PublicationItem = {
  readonly id: string;
  readonly published_at: string;
  readonly event_id: string;
  readonly source: string;
  readonly job_id: string;
  readonly attempt: number;
  readonly result: PublicationResult;
  readonly detail: string | null;
  readonly duration_ms: number;
  readonly relay_id: string;
  readonly replay_id: string | null;
  readonly queue: string | null;
};

/** Times are RFC 3339. `sources`: those that may be seen, null for all. */
export type PublicationFilters = {
  readonly sources: readonly string[] | null;
  readonly result?: PublicationResult | undefined;
  readonly event_id?: string | undefined;
  readonly job_id?: string | undefined;
  readonly job_id_prefix?: string | undefined;
  readonly replay_id?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
};

/** Each is a look-up in every partition: 40 days of 200 events cost some 20 ms. */
const EVENTS_OF_PREFIX_MAX = 200;

// Events are kept for good, publications for a while.
const complete = {
  columns: sql`page.*, e.source, e.job_id, e.status as event_status, e.progress_percentage as event_progress`,
  joins: sql`join events e on e.sequence = page.event_sequence`,
};

const columns = sql`t.id, ${timeText('t.published_at')} as published_at, t.event_sequence, t.attempt, t.result, t.detail,
  t.duration_ms, t.relay_id, t.replay_id, t.queue`;

const spec: Spec = {
  table: 'publications',
  row: sql`t.id, t.published_at, t.event_sequence, t.attempt, t.result, t.detail, t.duration_ms, t.relay_id,
    t.replay_id, t.queue, t.source`,
  columns,
  time: 'published_at',
  ties: [{ column: 'id', type: 'bigint' }],
  complete,
};

export const publications: List<PublicationFilters, PublicationItem> = {
  types: typesOf(spec),
  read: async (db, filters, options) => {
    const ofEvents = await byEvents(db, filters);
    const question: Question = {
      from: filters.from,
      to: filters.to,
      ...(ofEvents.sure && { sure: ofEvents.sure }),
      filters: [
        ...ofEvents.filters,
        ...bySources(filters.sources),
        ...byUnusual('result', filters.result, { usual: ['confirmed'], only: sql`t.result <> 'confirmed'` }),
        ...byColumn('replay_id', filters.replay_id, {
          type: 'uuid',
          only: sql`t.replay_id is not null`,
        }),
      ],
    };
    const { rows, next } = await readPage(db, spec, question, options);
    return { items: (rows as PublicationRow[]).map(toPublication), next };
  },
};

/** Through the events that are meant, where they are few. */
async function byEvents(
  db: Kysely<Database>,
  filters: PublicationFilters,
): Promise<Pick<Question, 'sure' | 'filters'>> {
  const { event_id, job_id, job_id_prefix: prefix, sources } = filters;
  if (event_id === undefined && job_id === undefined && prefix === undefined) return { filters: [] };
  const key = event_id === undefined ? undefined : parseEventId(event_id);
  if (event_id !== undefined && key === undefined) return { sure: ofSequences([]), filters: [] };
  const names: Filter['condition'][] = [
    ...(key === undefined
      ? []
      : [
          sql`e.job_id = ${key.jobId} and e.status = ${key.status}
            and e.progress_percentage is not distinct from ${key.progress}::smallint`,
        ]),
    ...(job_id === undefined ? [] : [sql`e.job_id = ${job_id}`]),
    ...(prefix === undefined ? [] : [sql`e.job_id >= ${prefix} and e.job_id < ${prefixEnd(prefix)}`]),
  ];
  const known =
    key === undefined
      ? sources
      : sources === null
        ? [key.source]
        : sources.filter((name) => name === key.source);
  // By events_dedup_key, for each source in turn.
  const statement = sql<{ sequence: string }>`
    with ${sourcesCte('events', known)}
    select e.sequence from s cross join lateral (
      select e.sequence from events e where e.source = s.v and ${sql.join(names, sql` and `)}
      order by e.job_id limit ${EVENTS_OF_PREFIX_MAX + 1}) e limit ${EVENTS_OF_PREFIX_MAX + 1}`;
  const { rows } = await statement.execute(db);
  if (rows.length <= EVENTS_OF_PREFIX_MAX) {
    return { sure: ofSequences(rows.map(({ sequence }) => sequence)), filters: [] };
  }
  const condition = sql`exists (
    select from events e where e.sequence = t.event_sequence and ${sql.join(names, sql` and `)})`;
  return { filters: [{ condition }] };
}

/** Index publications_event. */
const ofSequences = (sequences: readonly string[]) =>
  ({
    by: 'few',
    condition: sql`t.event_sequence = any(${sequences}::bigint[])`,
    sources: undefined,
  }) as const;

type PublicationRow = Omit<PublicationItem, 'event_id'> & {
  event_sequence: string;
  event_status: Status;
  event_progress: number | null;
};

function toPublication(row: PublicationRow): PublicationItem {
  const { event_sequence: _, event_status: status, event_progress: progress, ...shown } = row;
  return { ...shown, event_id: eventId(row.source, { jobId: row.job_id, status, progress }) };
}

/** Of the events with these numbers (publications_event), oldest first, behind the place (time, id). */
export async function readPublicationsOf(
  db: Kysely<Database>,
  sequences: readonly string[],
  { after, limit }: { after: { at: string; id: string }; limit: number },
): Promise<PublicationItem[]> {
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

/** Those that are named by id and time: index publications_time. In the order of their time. */
export async function readPublicationsNamed(
  db: Kysely<Database>,
  keys: readonly { readonly id: string; readonly at: string }[],
): Promise<PublicationItem[]> {
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
