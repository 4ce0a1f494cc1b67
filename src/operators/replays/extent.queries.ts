// How many events a replay is for, and between which sequences they are. Reads a bounded number of events, since the ledger keeps
// them for good.

import { type Kysely, sql } from 'kysely';
import type { Database } from '../../ledger/index.ts';
import type { Event } from '../events/contract.ts';
import { allEvents, eventSpec, readEventsNumbered } from '../events/queries.ts';
import { looseScan } from '../kernel/list/loose-scan.queries.ts';
import { firstRows } from '../kernel/list/scan.queries.ts';
import { filtersIn, type Selection, selected, timesOf } from './selection.queries.ts';

/** Between which sequences the events of a replay are: behind `after`, and up to `upTo`. */
export type Extent = {
  readonly matched: number;
  /** False if there were too many events to read: then `matched` is a lower bound. */
  readonly isExact: boolean;
  readonly after: string;
  readonly upTo: string;
};

/** Events that are read at most, in the order of the table: a microsecond or two each. */
const READ_MAX = 1_000_000;
/** The same if each costs a random access: to the table for a prefix of jobs' ids, or to the deliveries. */
const RANDOM_READ_MAX = 100_000;
/** No statement takes so long from its begin, which is the event's time, to drawing the event's sequence. */
const DRAWN_WITHIN = sql`interval '1 hour'`;

/**
 * Counts the events, and finds between which sequences they are. Reads at most `lookMax` events.
 *
 * If there are more, `upTo` is the highest sequence of all events: those committed before this statement have no higher one.
 * An event that is committed later may have a lower one, as it may in between the events that were counted: it is replayed, too.
 */
export async function measureSelected(
  db: Kysely<Database>,
  selection: Selection,
  { sources, lookMax }: { sources: readonly string[] | null; lookMax?: number },
): Promise<Extent> {
  const { read, limit } = boundedRead(selection, sources, lookMax);
  const from = 'filter' in selection ? (selection.filter.from ?? null) : null;
  const { rows } = await sql<{
    read: string;
    matched: string;
    first: string;
    last: string;
    before: string;
    newest: string;
  }>`
    select count(*) as read, count(*) filter (where is_meant) as matched,
      coalesce(min(sequence) filter (where is_meant), 1) as first,
      coalesce(max(sequence) filter (where is_meant), 0) as last,
      -- Of each source the rows of one time by events_source, and one row by the primary key.
      coalesce((
        select max(b.sequence) from (${looseScan('events', 'source')}) k (source) cross join lateral (
          select b.sequence from events b
          where b.source = k.source and b.recorded_at < ${from}::timestamptz - ${DRAWN_WITHIN}
          order by b.source desc, b.recorded_at desc fetch first row with ties
        ) b
      ), 0) as before,
      coalesce((select max(a.sequence) from events a), 0) as newest
    from (select t.sequence, ${selected(selection, sources)} as is_meant from (${read}) t offset 0) as events_read`.execute(
    db,
  );
  const [row] = rows;
  if (row === undefined) throw new Error('an aggregate has one row');
  const matched = Math.min(Number(row.matched), limit);
  return Number(row.read) > limit
    ? { matched, isExact: false, after: row.before, upTo: row.newest }
    : { matched, isExact: true, after: String(BigInt(row.first) - 1n), upTo: row.last };
}

/** The first of those that are counted, as the API shows events. */
export async function sampleSelected(
  db: Kysely<Database>,
  selection: Selection,
  { sources, limit, lookMax }: { sources: readonly string[] | null; limit: number; lookMax?: number },
): Promise<Event[]> {
  const { read } = boundedRead(selection, sources, lookMax);
  const { rows } = await sql<{ sequence: string }>`
    select t.sequence from (${read}) t where ${selected(selection, sources)}
    order by t.sequence limit ${limit}`.execute(db);
  return readEventsNumbered(
    db,
    rows.map(({ sequence }) => sequence),
  );
}

/**
 * The events that may be selected, by one index: the first of the filters' table, which is the narrowest as a rule. At most one
 * more than the limit, and in the order of the index, so that the planner does not read the whole table instead.
 */
function boundedRead(selection: Selection, sources: readonly string[] | null, lookMax = READ_MAX) {
  const path = filtersIn(selection, sources).find((filter) => filter.path !== undefined)?.path ?? allEvents;
  const filter = 'filter' in selection ? selection.filter : {};
  const isRandom = [
    filter.job_id,
    filter.job_id_prefix,
    filter.secret_fingerprint,
    filter.remote_address,
  ].some((value) => value !== undefined);
  const limit = Math.min(lookMax, isRandom ? RANDOM_READ_MAX : READ_MAX);
  // Only what the conditions need, since a million rows may be read.
  const columns = sql`t.sequence, t.source, t.job_id, t.status, t.error_code, t.late, t.recorded_at, t.delivery_id`;
  // Of jobs those of any time: their index is not in the order of time, so the others would be read all the same.
  const conditions = path.sorted ? [] : timesOf(selection);
  const read = firstRows(eventSpec, path, { columns, conditions, limit: limit + 1 });
  return { read, limit };
}
