// The list of the outbox's entries, oldest first. The cost is bounded whatever the backlog is: by the entries that a page reads.

import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Database } from '../../ledger/index.ts';
import type { Position } from '../kernel/list/cursor.ts';
import type { Scoped } from '../kernel/list/filters.queries.ts';
import { cutPage, type List, type Page, type PageOptions } from '../kernel/list/list.queries.ts';
import type { Entry, outboxFilters } from './contract.ts';
import {
  columns,
  type EntryRow,
  has,
  inBatches,
  inCopies,
  inHeld,
  ofJob,
  ofJobCte,
  ofSources,
  type Place,
  START,
  toEntry,
} from './entries.queries.ts';

export type OutboxFilters = Scoped<typeof outboxFilters>;

/** Some 20 ms of entries in memory: of an event in a batch, the batch and the event are read. */
export const INSPECT = 5_000;

/**
 * By the entry's place and number, and not by time as other lists, so it has statements of its own. Each table has an index in
 * this order.
 */
export const outbox: List<OutboxFilters, Entry> = {
  types: ['bigint', 'bigint'],
  read: async (db, filters, options) => {
    const { sources, job_id, reason, queue } = filters;
    if (job_id !== undefined) return readOfJob(db, { ...filters, job_id }, options);
    const { after, limit } = options;
    // Without these filters, each entry of the parts is wanted.
    const isServed = sources === null && reason === undefined && queue === undefined;
    const inspect = isServed ? limit + 1 : INSPECT;
    const parts = partsOf(filters, { after: after === null ? START : toPlace(after), limit: inspect });
    if (parts.length === 0) return { items: [], next: null };
    // One statement, so that `reach`, the place where the entries end that were looked at, is that of these entries.
    const { rows } = await sql<FoundRow>`
      with looked_at as materialized (
        select * from (${sql.join(
          parts.map((part) => sql`(${part})`),
          sql` union all `,
        )}) o
        order by o.place, o.number limit ${inspect}
      )
      select r.reach, f.* from (
        select (
          select array[o.place::text, o.number::text] from looked_at o order by o.place, o.number
          offset ${inspect - 1} limit 1
        ) as reach
      ) r left join (
        select o.place, ${columns} from looked_at o
        where ${ofSources(sources)} and ${has('last_error', reason)} and ${has('queue', queue)}
        order by o.place, o.number limit ${limit + 1}
      ) f on true order by f.place, f.id`.execute(db);
    const found = rows.filter((row): row is PlacedRow => row.id !== null);
    return found.length > limit
      ? pageOf(found, limit)
      : { items: found.map(itemOf), next: rows[0]?.reach ?? null };
  },
};

type PlacedRow = EntryRow & { readonly place: string; readonly reach?: Position | null };
type FoundRow = PlacedRow | { readonly id: null; readonly reach: Position | null };

/** The tables that have such entries. Events in batches are pending and have no error; only copies have a queue. */
function partsOf(
  { state, copies, reason, queue }: OutboxFilters,
  options: { after: Place; limit: number },
): RawBuilder<unknown>[] {
  const hasEvents = copies !== true && queue === undefined;
  const hasPending = (state ?? 'pending') === 'pending' && reason === undefined;
  return [
    ...(hasEvents && hasPending ? [inBatches(options)] : []),
    ...(hasEvents ? [inHeld(state, options)] : []),
    ...(copies === false ? [] : [inCopies(state, options)]),
  ];
}

/** One job's entries, by their numbers alone: they are few. */
async function readOfJob(
  db: Kysely<Database>,
  { sources, state, copies, reason, queue, job_id: jobId }: OutboxFilters & { job_id: string },
  { after, limit }: PageOptions,
): Promise<Page<Entry>> {
  const isOfKind = copies === undefined ? sql`true` : sql`(o.replay_id is not null) = ${copies}`;
  const { rows } = await sql<PlacedRow>`
    with ${ofJobCte(jobId, sources)}
    select o.place, ${columns} from (${ofJob}) o
    where ${state === undefined ? sql`true` : sql`o.state = ${state}`} and ${isOfKind}
      and ${has('last_error', reason)} and ${has('queue', queue)} and o.number > ${after?.[1] ?? '0'}::bigint
    order by o.number limit ${limit + 1}`.execute(db);
  return pageOf(rows, limit);
}

const toPlace = ([first = '0', number = '0']: Position): Place => ({ first, number });

const itemOf = ({ place: _place, reach: _reach, ...row }: PlacedRow): Entry => toEntry(row);

function pageOf(rows: readonly PlacedRow[], limit: number): Page<Entry> {
  const { items, next } = cutPage(rows, limit, ({ place, id }) => [place, id]);
  return { items: items.map(itemOf), next };
}

/** One job's entries, the first `limit`. */
export async function readEntriesOfJob(
  db: Kysely<Database>,
  job: { source: string; jobId: string },
  limit: number,
): Promise<Entry[]> {
  const { items } = await readOfJob(db, { sources: [job.source], job_id: job.jobId }, { after: null, limit });
  return [...items];
}
