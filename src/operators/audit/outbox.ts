// The list of the outbox's entries, oldest first. The cost is bounded whatever the backlog is: by the entries that a page reads.

import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Database } from '../../ledger/index.ts';
import type { Entry, outboxFilters } from '../contract/outbox.ts';
import { columns, type EntryRow, has, inState, ofJobCte, ofKind, ofSources, toEntry } from './entries.ts';
import type { Scoped } from './filters.ts';
import { cutPage, type List, type Page, type PageOptions } from './lists.ts';

export type OutboxFilters = Scoped<typeof outboxFilters>;

/** Some 20 ms of entries in memory. */
const INSPECT = 10_000;
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

/** One job's entries, the first `limit`. */
export async function readEntriesOfJob(
  db: Kysely<Database>,
  job: { source: string; jobId: string },
  limit: number,
): Promise<Entry[]> {
  const { items } = await ofJob(db, { sources: [job.source], job_id: job.jobId }, { after: null, limit });
  return [...items];
}
