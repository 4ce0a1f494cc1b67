// The groups of the outbox and of the quarantine: how much there is for which reason, in which queue, from which source. The
// cost is bounded however much there is: of each part the oldest rows are read, by one index, and no more.

import { type Kysely, type RawBuilder, sql } from 'kysely';
import {
  GROUPS_MAX,
  type OutboxGroups,
  type outboxGroupFilters,
  type QuarantineGroups,
  type quarantineGroupFilters,
} from '../contract/groups.ts';
import { COUNTED_MAX } from '../contract/orders.ts';
import { type Database, type OutboxState, timeText } from '../../ledger/index.ts';
import { QUARANTINE_STATES, quarantineConditions, receivedBetween } from './deliveries.ts';
import { has, inState, ofKind, ofSources } from './entries.ts';
import type { Scoped } from './filters.ts';

export type OutboxGroupsAsked = Scoped<typeof outboxGroupFilters>;
export type QuarantineGroupsAsked = Scoped<typeof quarantineGroupFilters>;

/** Of each part. Enough to tell what "10,000+" are; some 30 ms in memory. */
const READ_MAX = 50_000;

const MAX_NUMBER = sql.lit('9223372036854775807');

/** Rows in the order of one index, so that many rows of one part hide none of another. */
type Part = {
  /** Of `outbox o` or `deliveries t`. */
  readonly columns: { readonly state: RawBuilder<unknown>; readonly at: RawBuilder<unknown> };
  readonly value: RawBuilder<unknown>;
  readonly copies: boolean;
  /** The part's rows in order, from `from` on. */
  readonly scan: RawBuilder<unknown>;
  /** Which of its rows are counted. */
  readonly matches: RawBuilder<unknown>;
};

type Row<State> = {
  readonly copies: boolean;
  readonly state: State;
  readonly value: string | null;
  readonly count: number;
  readonly oldest: string;
  readonly newest: string;
  readonly rows_read: number;
};

/** Live entries by their state (outbox_pending, outbox_waiting), and the copies of replays (outbox_replay). */
export async function groupOutbox(
  db: Kysely<Database>,
  { by, state, copies, reason, queue, sources }: OutboxGroupsAsked,
): Promise<OutboxGroups> {
  const value = { reason: sql`o.last_error`, queue: sql`o.queue`, source: sql`o.source` }[by];
  const columns = { state: sql`o.state`, at: sql`o.recorded_at` };
  const ofFilters = sql`${ofSources(sources)} and ${has('last_error', reason)} and ${has('queue', queue)}`;
  const states: readonly OutboxState[] = state === undefined ? ['pending', 'returned', 'parked'] : [state];
  const live = states.map(
    (one): Part => ({
      columns,
      value,
      copies: false,
      scan: one === 'pending' ? PENDING : waitingIn(one),
      matches: sql`${ofFilters} and ${ofKind(false)}`,
    }),
  );
  const ofReplays: Part = {
    columns,
    value,
    copies: true,
    scan: sql`from outbox o where ${ofKind(true)} order by o.replay_id, o.sequence`,
    matches: sql`${ofFilters} and ${inState(state)}`,
  };
  const parts = [...(copies === true ? [] : live), ...(copies === false ? [] : [ofReplays])];
  const { rows, ...rest } = await readGroups<OutboxState>(db, parts);
  return {
    items: rows.map((row) => ({ ...toGroup(row), state: row.state, copies: row.copies })),
    ...rest,
  };
}

/** By outbox_pending, which has no copies. */
const PENDING = sql`from outbox o where ${inState('pending')} and ${ofKind(false)} order by o.sequence`;

/**
 * By outbox_waiting, which has a few copies. Between two places of the index, whose state the planner does not see: for an
 * equal state it would take the order to be that of the primary key, and read all entries before the first one of this state.
 */
const waitingIn = (state: OutboxState): RawBuilder<unknown> => sql`
  from (select ${state}::text as state offset 0) k cross join lateral (
    select * from outbox o
    where o.state <> 'pending' and (o.state, o.sequence) > (k.state, 0) and (o.state, o.sequence) < (k.state, ${MAX_NUMBER})
    order by o.state, o.sequence limit ${READ_MAX + 1}) o`;

/** By the partial index of the state, as the list of the quarantine. */
export async function groupQuarantine(
  db: Kysely<Database>,
  { by, state = 'waiting', from, to, ...others }: QuarantineGroupsAsked,
): Promise<QuarantineGroups> {
  const { rows, ...rest } = await readGroups<typeof state>(db, [
    {
      columns: { state: sql`${state}::text`, at: sql`t.received_at` },
      value: by === 'reason' ? sql`t.reason` : sql`t.source`,
      copies: false,
      scan: sql`from deliveries t
        where ${sql.join([QUARANTINE_STATES[state], ...receivedBetween({ from, to })], sql` and `)}
        order by t.received_at, t.id`,
      matches: sql.join([sql`true`, ...quarantineConditions(others)], sql` and `),
    },
  ]);
  return { items: rows.map(toGroup), ...rest };
}

async function readGroups<State>(
  db: Kysely<Database>,
  parts: readonly Part[],
): Promise<{ rows: readonly Row<State>[]; has_more: boolean; complete: boolean }> {
  const { rows } = await sql<Row<State>>`
    select g.copies, g.state, g.value, g.count, ${timeText('g.oldest')} as oldest, ${timeText('g.newest')} as newest,
      g.rows_read
    from (${sql.join(parts.map(groupsOf), sql` union all `)}) g`.execute(db);
  const found = rows.filter(({ count }) => count > 0).toSorted(largestFirst);
  return {
    rows: found.slice(0, GROUPS_MAX),
    has_more: found.length > GROUPS_MAX,
    complete: rows.every(isRead),
  };
}

/** Also groups without a row that matches, so that there is one that tells how many rows were read. */
const groupsOf = ({ columns: { state, at }, value, copies, scan, matches }: Part): RawBuilder<unknown> => sql`
  (select ${copies}::boolean as copies, r.state, r.value, count(*) filter (where r.matches)::int as count,
     min(r.at) filter (where r.matches) as oldest, max(r.at) filter (where r.matches) as newest,
     (sum(count(*)) over ())::int as rows_read
   from (select ${state} as state, ${value} as value, ${at} as at, (${matches}) as matches
         ${scan} limit ${READ_MAX + 1}) r
   group by r.state, r.value order by count desc, min(r.at) limit ${GROUPS_MAX + 1})`;

const largestFirst = (a: Row<unknown>, b: Row<unknown>): number =>
  b.count - a.count || (a.oldest < b.oldest ? -1 : 1);

/** One row more than READ_MAX is read, to tell whether there are more. */
const isRead = ({ rows_read }: Row<unknown>): boolean => rows_read <= READ_MAX;

const toGroup = (row: Row<unknown>): QuarantineGroups['items'][number] => ({
  value: row.value,
  count: Math.min(row.count, COUNTED_MAX),
  count_is_exact: isRead(row) && row.count <= COUNTED_MAX,
  oldest_at: row.oldest,
  newest_at: isRead(row) ? row.newest : null,
});
