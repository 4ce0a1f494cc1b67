// The groups of the outbox and of the quarantine: how much there is for which reason, in which queue, from which source. The
// cost is bounded however much there is: of each part the oldest rows are read, by one index, and no more.

import { type Kysely, type RawBuilder, sql } from 'kysely';
import { batchedEvents, batches, type Database, type OutboxState, timeText } from '../../ledger/index.ts';
import type { Scoped } from '../kernel/list/filters.queries.ts';
import { COUNTED_MAX } from '../kernel/order/fields.contract.ts';
import { has, inState, ofSources } from '../outbox/entries.queries.ts';
import { QUARANTINE_STATES, quarantineConditions, receivedBetween } from '../quarantine/queries.ts';
import {
  GROUPS_MAX,
  type OutboxGroups,
  type outboxGroupFilters,
  type QuarantineGroups,
  type quarantineGroupFilters,
} from './contract.ts';

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

/** Events by their state, and the copies of replays. */
export async function groupOutbox(
  db: Kysely<Database>,
  { by, state, copies, reason, queue, sources }: OutboxGroupsAsked,
): Promise<OutboxGroups> {
  const value = { reason: sql`o.last_error`, queue: sql`o.queue`, source: sql`o.source` }[by];
  const columns = { state: sql`o.state`, at: sql`o.recorded_at` };
  const ofFilters = sql`${ofSources(sources)} and ${has('last_error', reason)} and ${has('queue', queue)}`;
  const states: readonly OutboxState[] = state === undefined ? ['pending', 'returned', 'parked'] : [state];
  const pending = pendingEvents({ withSources: by === 'source' || sources !== null });
  const events = states.map(
    (one): Part => ({
      columns,
      value,
      copies: false,
      scan: one === 'pending' ? pending : waitingIn(one),
      matches: ofFilters,
    }),
  );
  const ofReplays: Part = {
    columns,
    value,
    copies: true,
    scan: sql`from replay_copies o order by o.replay_id, o.position`,
    matches: sql`${ofFilters} and ${state === undefined ? sql`true` : sql`o.state = ${state}`}`,
  };
  const parts = [...(copies === true ? [] : events), ...(copies === false ? [] : [ofReplays])];
  const { rows, ...rest } = await readGroups<OutboxState>(db, parts);
  return {
    items: rows.map((row) => ({ ...toGroup(row), state: row.state, copies: row.copies })),
    ...rest,
  };
}

/** One row more is read than READ_MAX, to tell whether there are more. */
const limit = READ_MAX + 1;

/** Those in batches, whose sources are looked up only where they are asked for, and held ones (outbox_held_pending). */
const pendingEvents = ({ withSources }: { withSources: boolean }): RawBuilder<unknown> => sql`
  from (
    (select b.first as place, ${withSources ? sql`e.source` : sql`null::text`} as source, 'pending'::text as state,
       b.recorded_at, null::text as last_error, null::text as queue
     from ${withSources ? batchedEvents({ limit }) : sql`${batches({ limit })} b cross join unnest(b.sequences)`}
     order by b.first limit ${limit})
    union all (
      select h.sequence, h.source, h.state, h.recorded_at, h.last_error, null::text
      from outbox_held h where ${inState('h', 'pending')} order by h.sequence limit ${limit})
  ) o order by o.place`;

/**
 * By outbox_held_waiting. Between two places of the index, whose state the planner does not see: for an equal state it would
 * take the order to be that of the primary key, and read all entries before the first one of this state.
 */
const waitingIn = (state: OutboxState): RawBuilder<unknown> => sql`
  from (select ${state}::text as state offset 0) k cross join lateral (
    select h.*, null::text as queue from outbox_held h
    where h.state <> 'pending' and (h.state, h.sequence) > (k.state, 0) and (h.state, h.sequence) < (k.state, ${MAX_NUMBER})
    order by h.state, h.sequence limit ${limit}) o`;

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
         ${scan} limit ${limit}) r
   group by r.state, r.value order by count desc, min(r.at) limit ${GROUPS_MAX + 1})`;

const largestFirst = (a: Row<unknown>, b: Row<unknown>): number =>
  b.count - a.count || (a.oldest < b.oldest ? -1 : 1);

const isRead = ({ rows_read }: Row<unknown>): boolean => rows_read <= READ_MAX;

const toGroup = (row: Row<unknown>): QuarantineGroups['items'][number] => ({
  value: row.value,
  count: Math.min(row.count, COUNTED_MAX),
  count_is_exact: isRead(row) && row.count <= COUNTED_MAX,
  oldest_at: row.oldest,
  newest_at: isRead(row) ? row.newest : null,
});
