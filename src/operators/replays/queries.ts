// Reads replays as the API shows them.

import { type Kysely, sql } from 'kysely';
import { parseJson } from '../../base/json/json.ts';
import type { Database, ReplayState } from '../../ledger/index.ts';
import { byPartialIndex, type FilterTable, filtersOf } from '../kernel/list/filters.queries.ts';
import { createList, type List } from '../kernel/list/list.queries.ts';
import type { ListSpec } from '../kernel/list/range.queries.ts';
import { shownColumns } from '../kernel/list/shown-columns.queries.ts';
import type { EventFilter, Selection } from './selection.queries.ts';

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

type Row = Omit<Replay, 'event_ids' | 'filter' | 'counts'> &
  Readonly<Record<Count, string>> & { readonly selection: string };

const columns = shownColumns<Row>({
  id: 'column',
  state: 'column',
  paused_because: 'column',
  created_by: 'column',
  note: 'column',
  sources: 'column',
  selection: 'column',
  queue: 'column',
  rate_per_second: 'column',
  matched: 'column',
  matched_exactly: 'column',
  queued: 'column',
  confirmed: 'column',
  returned: 'column',
  failed: 'column',
  skipped: 'column',
  created_at: 'time',
  updated_at: 'time',
  finished_at: 'time',
});

export async function findReplay(db: Kysely<Database>, id: string): Promise<Replay | undefined> {
  const { rows } = await sql<Row>`select ${columns} from replays t where t.id = ${id}::uuid`.execute(db);
  return rows[0] && toReplay(rows[0]);
}

/** `within`: only those that may touch none but these sources; null for all. */
type ReplayFilters = {
  readonly state?: ReplayState | undefined;
  readonly within: readonly string[] | null;
};

/** Where the filters of `replays` become SQL, and by which index. */
const replayFilters: FilterTable<ReplayFilters> = {
  // Index replays_state, which holds the open ones.
  state: (state) => {
    const condition = sql`t.state = ${sql.lit(state)}`;
    return state === 'running' || state === 'paused' ? byPartialIndex(condition) : { condition };
  },
  within: (sources) => (sources === null ? undefined : { condition: sql`t.sources <@ ${sources}::text[]` }),
};

const spec: ListSpec<Row> = {
  table: 'replays',
  row: sql`t.*`,
  columns,
  time: 'created_at',
  ties: [{ column: 'id', type: 'uuid' }],
};

export const replays: List<ReplayFilters, Replay> = createList(spec, {
  toQuestion: (asked) => ({ filters: filtersOf(replayFilters, asked), from: undefined, to: undefined }),
  toItem: toReplay,
});

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

function toReplay(row: Row): Replay {
  const selection = parseJson(row.selection) as Selection;
  return {
    id: row.id,
    state: row.state,
    paused_because: row.paused_because,
    created_at: row.created_at,
    created_by: row.created_by,
    note: row.note,
    event_ids: 'event_ids' in selection ? selection.event_ids : null,
    filter: 'filter' in selection ? selection.filter : null,
    queue: row.queue,
    rate_per_second: row.rate_per_second,
    counts: countsOf(row),
    matched_exactly: row.matched_exactly || row.state === 'finished',
    updated_at: row.updated_at,
    finished_at: row.finished_at,
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
