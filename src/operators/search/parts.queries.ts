// Jobs that have a text anywhere in their ids, whatever its case. No index could find them at a price that each event would pay, so
// the newest jobs are looked through, and the answer says how far.

import { type Kysely, sql } from 'kysely';
import { type Database, timeText } from '../../ledger/index.ts';
import { hasPrefix, sourcesIn } from '../kernel/list/filters.queries.ts';
import { SEARCH_MAX, type SearchAnswer, type SearchItem } from './contract.ts';

/** Of all sources together: some 20 ms where the rows are in memory. */
const LOOKED_AT_MAX = 20_000;

type Found = {
  readonly found: readonly SearchItem[];
  readonly looked_through: NonNullable<SearchAnswer['looked_through']>;
};

/**
 * The newest first; those that begin with the text are not among them. Of each source the newest ones by index jobs_source, as many
 * as its share, so that many sources cost no more than one.
 */
export async function findJobsByPart(
  db: Kysely<Database>,
  text: string,
  { sources }: { readonly sources: readonly string[] | null },
): Promise<Found> {
  const { rows } = await sql<{ items: SearchItem[]; jobs: number; back_to: string | null }>`
    with k (source) as materialized (${sourcesIn('jobs', sources)}),
    share (jobs) as materialized (select greatest(1, ${LOOKED_AT_MAX} / greatest(1, count(*))) from k),
    looked as materialized (
      select j.* from k cross join lateral (
        select t.source, t.job_id, t.last_status, t.first_seen_at, t.last_seen_at from jobs t
        where t.source = k.source order by t.source desc, t.first_seen_at desc limit (select jobs from share)
      ) j
    ),
    reached (at) as (
      select max(s.at) from (
        select min(l.first_seen_at) as at from looked l group by l.source having count(*) = (select jobs from share)
      ) s
    ),
    found as (
      select * from looked t
      where strpos(lower(t.job_id), lower(${text})) > 0 and not (${hasPrefix('t.job_id', text)})
      order by t.first_seen_at desc, t.source, t.job_id limit ${SEARCH_MAX + 1}
    )
    select
      coalesce((
        select json_agg(json_build_object('what', 'job_part', 'id', f.job_id, 'source', f.source, 'state', f.last_status,
          'at', ${timeText('f.last_seen_at')}) order by f.first_seen_at desc, f.source, f.job_id) from found f
      ), '[]') as items,
      (select count(*)::int from looked) as jobs,
      (select ${timeText('r.at')} from reached r) as back_to`.execute(db);
  const [row] = rows;
  if (row === undefined) throw new Error('a count gives one row');
  const { items, jobs, back_to } = row;
  return { found: items, looked_through: { jobs, back_to } };
}
