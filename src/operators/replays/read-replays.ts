// Reads replays as the API shows them.

import { type Kysely, sql } from 'kysely';
import { parseJson } from '../../json.ts';
import { type Database, type ReplayState, timeText } from '../../ledger/index.ts';
import type { EventFilter, Selection } from './selection.ts';

export type Replay = {
  readonly id: string;
  readonly state: ReplayState;
  readonly paused_because: string | null;
  readonly created_at: string;
  readonly created_by: string;
  readonly note: string | null;
  readonly event_ids: readonly string[] | null;
  readonly filter: EventFilter | null;
  readonly queue: string | null;
  readonly rate_per_second: number;
  readonly counts: Readonly<Record<Count, number>>;
  /** False while there may be more events than `counts.matched`: there were too many to count. */
  readonly matched_exactly: boolean;
  readonly updated_at: string;
  readonly finished_at: string | null;
  /** The sources it may touch; null for all. Not shown. */
  readonly sources: readonly string[] | null;
};

type Count = 'matched' | 'queued' | 'confirmed' | 'returned' | 'failed' | 'skipped';

export type Skip = { readonly event_id: string; readonly reason: string };

const shown = (db: Kysely<Database>) =>
  db
    .selectFrom('replays')
    .selectAll()
    .select([
      timeText('replays.created_at').as('created'),
      timeText('replays.updated_at').as('updated'),
      timeText('replays.finished_at').as('finished'),
    ]);

export async function findReplay(db: Kysely<Database>, id: string): Promise<Replay | undefined> {
  const row = await shown(db).where('id', '=', id).executeTakeFirst();
  return row === undefined ? undefined : toReplay(row);
}

/** Newest first, from behind `after`. `within`: only replays that are limited to (some of) these sources. */
export async function listReplays(
  db: Kysely<Database>,
  options: {
    state: ReplayState | undefined;
    within: readonly string[] | null;
    after: { at: string; id: string } | undefined;
    limit: number;
  },
): Promise<Replay[]> {
  const { state, within, after, limit } = options;
  let query = shown(db).orderBy('created_at', 'desc').orderBy('id', 'desc').limit(limit);
  if (state !== undefined) query = query.where('state', '=', state);
  if (within !== null) query = query.where(sql<boolean>`sources <@ ${[...within]}::text[]`);
  if (after !== undefined)
    query = query.where(sql<boolean>`(created_at, id) < (${after.at}::timestamptz, ${after.id}::uuid)`);
  return (await query.execute()).map(toReplay);
}

/** The first events that it skipped, in the order of their acceptance. */
export async function listSkips(db: Kysely<Database>, id: string, limit: number): Promise<Skip[]> {
  return db
    .selectFrom('replay_skips as s')
    .innerJoin('events as e', 'e.sequence', 's.event_sequence')
    .select([
      sql<string>`concat_ws(':', e.source, e.job_id, e.status, e.progress_percentage)`.as('event_id'),
      's.reason',
    ])
    .where('s.replay_id', '=', id)
    .orderBy('s.event_sequence')
    .limit(limit)
    .execute();
}

type Row = Awaited<ReturnType<ReturnType<typeof shown>['executeTakeFirstOrThrow']>>;

function toReplay(row: Row): Replay {
  const selection = parseJson(row.selection) as Selection;
  return {
    id: row.id,
    state: row.state,
    paused_because: row.paused_because,
    created_at: row.created,
    created_by: row.created_by,
    note: row.note,
    event_ids: 'event_ids' in selection ? selection.event_ids : null,
    filter: 'filter' in selection ? selection.filter : null,
    queue: row.queue,
    rate_per_second: row.rate_per_second,
    counts: countsOf(row),
    matched_exactly: row.matched_exactly || row.state === 'finished',
    updated_at: row.updated,
    finished_at: row.finished,
    sources: row.sources,
  };
}

function countsOf(row: Row): Record<Count, number> {
  const names = ['matched', 'queued', 'confirmed', 'returned', 'failed', 'skipped'] as const;
  const counts = Object.fromEntries(names.map((name) => [name, Number(row[name])])) as Record<Count, number>;
  if (row.matched_exactly) return counts;
  // Not all were counted at the begin: what was fed since then is a better lower bound, and at the end the exact count.
  const fed = counts.queued + counts.skipped;
  return { ...counts, matched: row.state === 'finished' ? fed : Math.max(counts.matched, fed) };
}
