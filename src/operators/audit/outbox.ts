// The list of the outbox's entries, oldest first, and how many there are. The cost is bounded whatever the backlog is: by
// the entries that a page reads, and by those of each state that are counted.

import { type Kysely, type RawBuilder, sql } from 'kysely';
import { type Database, type OutboxState, timeText } from '../../ledger/index.ts';
import type { Entry, outboxFilters } from '../contract/outbox.ts';
import { columns, type EntryRow, has, inState, ofJobCte, ofKind, ofSources, toEntry } from './entries.ts';
import type { Scoped } from './filters.ts';
import { cutPage, type List, type Page, type PageOptions } from './lists.ts';

export type OutboxFilters = Scoped<typeof outboxFilters>;

/** Of live entries, and how many copies replays have beside them. */
export type Depth = {
  readonly counts: Readonly<Record<OutboxState, number>>;
  readonly copies: number;
  /** False if there are more than were read: the counts are lower bounds then. */
  readonly is_complete: boolean;
  /** Null, too, if all pending entries that were read are of other sources. */
  readonly oldest_pending_at: string | null;
};

/** Some 20 ms of entries in memory. */
const INSPECT = 10_000;
/** Of each state; some 50 ms for each that has so many. */
const COUNT_MAX = 100_000;

/**
 * By sequence, and not by time as other lists, so it has statements of its own. Their indexes are in its order: outbox_pending
 * (pending and no copy), outbox_waiting (other states), or the primary key. Copies are found by outbox_replay, and sorted:
 * the feeder keeps few in the outbox.
 */
export const outbox: List<OutboxFilters, Entry> = {
  types: ['bigint'],
  read: async (db, filters, options) => {
    const { job_id, reason, queue } = filters;
    if (job_id !== undefined) return ofJob(db, { ...filters, job_id }, options);
    const { after, limit } = options;
    const run = async <T>(statement: RawBuilder<T>) => (await statement.execute(db)).rows;
    // Only copies have a queue.
    const copies = filters.copies ?? (queue === undefined ? undefined : true);
    // Copies first, by their index (offset 0): in the order of the list they may stand behind all live entries.
    const entries = copies ? sql`(select * from outbox where replay_id is not null offset 0)` : sql`outbox`;
    const isPending = filters.state === 'pending';
    const scan = sql`from ${entries} o where ${inState(filters.state)}
        and ${copies === false && isPending ? ofKind(false) : sql`true`}
        and o.sequence > ${after?.[0] ?? '0'}::bigint
      order by o.sequence`;
    const { sources } = filters;
    // Without these filters, an index holds just the wanted entries, or most entries are wanted.
    const isServed = sources === null && reason === undefined && queue === undefined;
    if (isServed && (copies !== false || isPending)) {
      const rows = await run(sql<EntryRow>`select ${columns} ${scan} limit ${limit + 1}`);
      return pageOf(rows, limit);
    }
    const rows = await run(sql<EntryRow>`
      select ${columns} from (select o.* ${scan} limit ${INSPECT}) o
      where ${ofSources(sources)} and ${ofKind(copies)} and ${has('last_error', reason)} and ${has('queue', queue)}
      order by o.sequence limit ${limit + 1}`);
    if (rows.length > limit) return pageOf(rows, limit);
    const [end] = await run(
      sql<{ id: string }>`select o.sequence as id ${scan} offset ${INSPECT - 1} limit 1`,
    );
    // Where the first INSPECT entries end. Entries that are deleted between the two statements move it further on.
    return { items: rows.map(toEntry), next: end === undefined ? null : [end.id] };
  },
};

/** Live entries by their events' sequences (events_dedup_key, the primary key); copies, which are few, by outbox_replay. */
async function ofJob(
  db: Kysely<Database>,
  { sources, state, copies, reason, queue, job_id: jobId }: OutboxFilters & { job_id: string },
  { after, limit }: PageOptions,
): Promise<Page<Entry>> {
  const statement = sql<EntryRow>`
    with ${ofJobCte(jobId, sources)},
    found as (
      select o.* from outbox o where o.sequence in (select sequence from of_job)
      union all
      select o.* from outbox o where o.replay_id is not null and o.replay_of in (select sequence from of_job)
    )
    select ${columns} from found o
    where ${inState(state)} and ${ofKind(copies)} and ${has('last_error', reason)} and ${has('queue', queue)}
      and o.sequence > ${after?.[0] ?? '0'}::bigint
    order by o.sequence limit ${limit + 1}`;
  return pageOf((await statement.execute(db)).rows, limit);
}

const pageOf = (rows: readonly EntryRow[], limit: number): Page<Entry> =>
  cutPage(rows.map(toEntry), limit, ({ id }) => [id]);

/**
 * How many entries there are; `sources` as in the list. Each state is counted by the index of its entries
 * (outbox_pending, outbox_waiting, outbox_replay), so that many entries of one hide none of another.
 */
export async function readDepth(
  db: Kysely<Database>,
  { sources }: Pick<OutboxFilters, 'sources'>,
): Promise<Depth> {
  const counted = (scan: RawBuilder<unknown>, kind?: boolean) => sql`
    (select count(*)::int as entries_read, count(*) filter (where ${ofSources(sources)} and ${ofKind(kind)})::int as found,
       min(o.sequence) filter (where ${ofSources(sources)}) as first
     from (select o.sequence, o.source, o.replay_id from outbox o where ${scan} limit ${COUNT_MAX + 1}) o)`;
  // outbox_waiting has copies, too, which are filtered out here; outbox_pending has none.
  const statement = sql<{
    pending: number;
    returned: number;
    parked: number;
    copies: number;
    entries_read: number;
    oldest: string | null;
  }>`
    select pending.found as pending, returned.found as returned, parked.found as parked, copies.found as copies,
      greatest(pending.entries_read, returned.entries_read, parked.entries_read, copies.entries_read) as entries_read,
      (select ${timeText('o.recorded_at')} from outbox o where o.sequence = pending.first) as oldest
    from ${counted(sql`${inState('pending')} and ${ofKind(false)} order by o.sequence`)} pending
    cross join ${counted(sql`${inState('returned')} order by o.sequence`, false)} returned
    cross join ${counted(sql`${inState('parked')} order by o.sequence`, false)} parked
    cross join ${counted(sql`${ofKind(true)} order by o.replay_id, o.sequence`)} copies`;
  const { rows } = await statement.execute(db);
  const [row] = rows;
  // Aggregates without groups give one row, whatever they find.
  if (row === undefined) throw new Error('nothing was counted');
  const { pending, returned, parked, copies } = row;
  return {
    counts: { pending: capped(pending), returned: capped(returned), parked: capped(parked) },
    copies: capped(copies),
    is_complete: row.entries_read <= COUNT_MAX,
    oldest_pending_at: row.oldest,
  };
}

/** One entry more than COUNT_MAX is read, to tell whether there are more. */
const capped = (found: number) => Math.min(found, COUNT_MAX);

/** One job's entries, the first `limit`. */
export async function readEntriesOfJob(
  db: Kysely<Database>,
  job: { source: string; jobId: string },
  limit: number,
): Promise<Entry[]> {
  const { items } = await ofJob(db, { sources: [job.source], job_id: job.jobId }, { after: null, limit });
  return [...items];
}
