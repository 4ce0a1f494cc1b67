// What a text leads to: it is looked up as each kind of id, as an error code, as a source, and as the beginning of a job's id. Each
// look-up reads some rows of an index, however much the ledger holds. What leads to nothing is looked for in the newest jobs' ids
// (parts.queries.ts).

import { type Kysely, sql } from 'kysely';
import { type Database, timeText } from '../../ledger/index.ts';
import { deliveries, findDelivery } from '../deliveries/queries.ts';
import { events, findEvent } from '../events/queries.ts';
import { jobs } from '../jobs/queries.ts';
import { hasPrefix, sourcesIn } from '../kernel/list/filters.queries.ts';
import { findReplay } from '../replays/queries.ts';
import { PART_LENGTH_MIN, SEARCH_MAX, type SearchAnswer, type SearchItem } from './contract.ts';
import { findJobsByPart } from './parts.queries.ts';

/** What may be seen (null: all sources), and the names that are configured. */
type Within = {
  readonly sources: readonly string[] | null;
  readonly configured: readonly string[];
};
type LookUp = (db: Kysely<Database>, text: string, within: Within) => Promise<readonly SearchItem[]>;

const NEWEST = { after: null, limit: 1 } as const;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const isSeen = ({ sources }: Within, source: string) => sources === null || sources.includes(source);

/** One after the other, so that one request does not take all connections of the operators. */
const LOOK_UPS: readonly LookUp[] = [
  findJobs,
  findEvents,
  findDeliveries,
  findReplays,
  findErrorCode,
  findSource,
  findJobsByPrefix,
];

export async function search(db: Kysely<Database>, text: string, within: Within): Promise<SearchAnswer> {
  const items: SearchItem[] = [];
  const moreOf: SearchItem['what'][] = [];
  for (const lookUp of LOOK_UPS) {
    const found = await lookUp(db, text, within);
    items.push(...found.slice(0, SEARCH_MAX));
    if (found[SEARCH_MAX] !== undefined) moreOf.push(found[SEARCH_MAX].what);
  }
  const isNamed = items.some(({ what }) => what !== 'job_prefix');
  if (isNamed || text.length < PART_LENGTH_MIN) return { items, more_of: moreOf, looked_through: null };
  const { found, looked_through } = await findJobsByPart(db, text, within);
  const isMore = found.length > SEARCH_MAX;
  return {
    items: [...items, ...found.slice(0, SEARCH_MAX)],
    more_of: [...moreOf, ...(isMore ? (['job_part'] as const) : [])],
    looked_through,
  };
}

/** Of each source that has it. A job whose deliveries are all in quarantine has no row of its own. */
async function findJobs(db: Kysely<Database>, text: string, { sources }: Within): Promise<SearchItem[]> {
  const page = { after: null, limit: SEARCH_MAX + 1 };
  const { items } = await jobs.read(db, { sources, job_id: text }, page);
  const found = items.map(
    ({ source, state, last_seen_at: at }): SearchItem => ({ what: 'job', id: text, source, state, at }),
  );
  const known = new Set(items.map(({ source }) => source));
  const others = await newestDeliveries(db, text, sources);
  return [...found, ...others.filter(({ source }) => !known.has(source ?? ''))];
}

/** Of each source the newest delivery of the job: index deliveries_job. */
async function newestDeliveries(
  db: Kysely<Database>,
  jobId: string,
  sources: readonly string[] | null,
): Promise<SearchItem[]> {
  // Between two places of the index: asked for equal ids, the planner may read and sort all that a busy job has.
  const { rows } = await sql<SearchItem>`
    with k (source) as materialized (${sourcesIn('deliveries', sources)})
    select 'job' as what, d.job_id as id, d.source, d.outcome as state, ${timeText('d.received_at')} as at
    from k cross join lateral (
      select * from deliveries t
      where (t.source, t.job_id) >= (k.source, ${jobId})
        and (t.source, t.job_id, t.received_at) <= (k.source, ${jobId}, 'infinity')
      order by t.source desc, t.job_id desc, t.received_at desc limit 1
    ) d order by d.source limit ${SEARCH_MAX + 1}`.execute(db);
  return rows;
}

async function findEvents(db: Kysely<Database>, text: string, within: Within): Promise<SearchItem[]> {
  const event = await findEvent(db, text);
  if (event === undefined || !isSeen(within, event.source)) return [];
  const { source, kind, recorded_at: at } = event;
  return [{ what: 'event', id: text, source, state: kind, at }];
}

async function findDeliveries(db: Kysely<Database>, text: string, within: Within): Promise<SearchItem[]> {
  const delivery = UUID.test(text) ? await findDelivery(db, text) : undefined;
  if (delivery === undefined || !isSeen(within, delivery.source)) return [];
  const { id, source, outcome, received_at: at } = delivery;
  return [{ what: 'delivery', id, source, state: outcome, at }];
}

/** A replay may be seen with a token that sees all its sources. */
async function findReplays(db: Kysely<Database>, text: string, { sources }: Within): Promise<SearchItem[]> {
  const replay = UUID.test(text) ? await findReplay(db, text) : undefined;
  if (replay === undefined) return [];
  const isVisible = sources === null || (replay.sources?.every((one) => sources.includes(one)) ?? false);
  if (!isVisible) return [];
  const { id, state, created_at: at } = replay;
  return [{ what: 'replay', id, source: null, state, at }];
}

/** By the newest event that has it. A delivery that conflicts may have one that no event has. */
async function findErrorCode(db: Kysely<Database>, text: string, { sources }: Within): Promise<SearchItem[]> {
  const asked = { sources, error_code: text };
  const [event] = (await events.read(db, asked, NEWEST)).items;
  const [delivery] = event ? [] : (await deliveries.read(db, asked, NEWEST)).items;
  const at = event?.recorded_at ?? delivery?.received_at;
  return at === undefined ? [] : [{ what: 'error_code', id: text, source: null, state: null, at }];
}

async function findSource(db: Kysely<Database>, text: string, within: Within): Promise<SearchItem[]> {
  if (!isSeen(within, text)) return [];
  const isConfigured = within.configured.includes(text);
  const [newest] = (await deliveries.read(db, { sources: [text] }, NEWEST)).items;
  if (!isConfigured && newest === undefined) return [];
  const state = isConfigured ? 'configured' : null;
  return [{ what: 'source', id: text, source: text, state, at: newest?.received_at ?? null }];
}

/** In the order of their ids. Of each source the first ones of the primary key. */
async function findJobsByPrefix(
  db: Kysely<Database>,
  text: string,
  { sources }: Within,
): Promise<SearchItem[]> {
  const { rows } = await sql<SearchItem>`
    with k (source) as materialized (${sourcesIn('jobs', sources)})
    select 'job_prefix' as what, j.job_id as id, j.source, j.last_status as state, ${timeText('j.last_seen_at')} as at
    from k cross join lateral (
      select * from jobs t
      where t.source = k.source and t.job_id > ${text} and ${hasPrefix('t.job_id', text)}
      order by t.source, t.job_id limit ${SEARCH_MAX + 1}
    ) j order by j.job_id, j.source limit ${SEARCH_MAX + 1}`.execute(db);
  return rows;
}
