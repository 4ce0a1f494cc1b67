// The outbox in the database: which entries may be published now, and what became of those that were. Every
// write is one statement and repeats without harm, so that two relays that both believe to lead for a moment
// can cause a second copy but no loss. Live entries stand here; copies.ts has what is different for replays' copies.
//
//   pending ──confirmed──▶ (deleted)
//      │ ▲ ╲──returned───▶ returned   nobody was bound; a replay sends it again
//      │ └─ nacked, failed: due again after a while, attempts + 1
//      └──── attempts used up ─────▶ parked     an operator decides; later events of its job wait behind it

import { sql } from 'kysely';
import type { Publication } from './publisher.ts';
import type { Status, DatabaseConnection, Statement, OutboxState } from '../ledger/index.ts';
import type { EntryEvent } from './cloud-event.ts';
import { LOAD_COPIES, SETTLE_COPIES } from './copies.ts';
import { LIVE_MAY_GO } from './live-entries.ts';

export type Entry = EntryEvent & {
  /** Its key and place in the outbox, decimal digits. A live entry's is its event's sequence. */
  readonly position: string;
  readonly attempts: number;
};

/** What is to be written of one attempt. `retryInMs` is set where the entry itself was at fault. */
export type Settlement = {
  readonly entry: Entry;
  readonly publication: Publication;
  readonly next: 'delete' | 'return' | 'retry' | 'park' | 'keep';
  readonly retryInMs: number;
};

export type OutboxEntries = {
  /**
   * The next live entries in order, at most `limit` rows and about `bytes` of data (one is always given), without
   * those at the positions `except`.
   */
  readonly load: (options: LoadOptions) => Promise<Entry[]>;
  /** The next copies of the replays that run, in turns. `except` holds the live positions in memory too. */
  readonly loadCopies: (options: LoadOptions) => Promise<Entry[]>;
  /** Records the publications of live entries and moves these on, all or nothing. */
  readonly settle: (settlements: readonly Settlement[]) => Promise<void>;
  /** The same for copies, which it counts in their replays. Waits for the locks of these. */
  readonly settleCopies: (settlements: readonly Settlement[]) => Promise<void>;
  /** Live entries by state, how many seconds ago the oldest pending one was accepted, and all copies. */
  readonly depth: () => Promise<{
    counts: Record<OutboxState, number>;
    oldestPendingS: number;
    copies: number;
  }>;
};

type LoadOptions = { limit: number; bytes: number; except: readonly string[] };

/**
 * An entry waits while an earlier one of its job failed and is not due yet, or is parked (index
 * outbox_troubled, which holds just those). Rows are found by state and never by "sequence greater than the
 * last", since a lower sequence may commit later, come due again, or be sent back by an operator.
 *
 * The forms are chosen for their plans: NOT IN is hashed and the scalar subquery is looked up row by row, where
 * the planner would compare each with each for NOT EXISTS (1,900 rows beside 900 known and 300 troubled ones:
 * 2 ms instead of 20).
 */
export const LOAD: Statement = {
  name: 'outbox-load',
  text: `
with next as (
  select o.* from outbox o
  where ${LIVE_MAY_GO}
  order by o.sequence limit $2
),
sized as (
  select next.*, sum(octet_length(data)) over (order by sequence) - octet_length(data) as bytes_before from next
)
select sequence as position, sequence, source, job_id as "jobId", status, progress_percentage as progress, late,
       occurred_at as "occurredAt", recorded_at as "recordedAt", data, attempts
from sized where bytes_before < $3 order by sequence`,
};

/** An entry is changed only from the state and attempts that we saw: another relay may have moved it on. */
const SETTLE: Statement = {
  name: 'outbox-settle',
  text: `
with settled as (
  select * from unnest(
    $1::bigint[], $2::int[], $3::text[], $4::int[], $5::text[], $6::text[], $7::int[], $8::text[]
  ) as t (sequence, attempts, next, retry_in_ms, result, detail, duration_ms, source)
),
gone as (
  delete from outbox o using settled s where s.next = 'delete' and o.sequence = s.sequence
),
moved as (
  update outbox o set
    state = case s.next when 'return' then 'returned' when 'park' then 'parked' else 'pending' end,
    attempts = o.attempts + 1,
    due_at = now() + make_interval(secs => s.retry_in_ms / 1000.0),
    last_error = s.detail
  from settled s
  where s.next in ('return', 'retry', 'park') and o.sequence = s.sequence
    and o.state = 'pending' and o.attempts = s.attempts
)
insert into publications (published_at, event_sequence, attempt, result, detail, duration_ms, relay_id, source)
select now(), sequence, attempts + 1, result, detail, duration_ms, $9::uuid, source from settled`,
};

const DETAIL_MAX_LENGTH = 300;

export function createOutboxEntries(
  connection: DatabaseConnection,
  options: { relayId: string },
): OutboxEntries {
  return {
    load: ({ limit, bytes, except }) =>
      connection.execute<Entry & { status: Status }>(LOAD, [except, limit, bytes]),

    loadCopies: async ({ limit, bytes, except }) => {
      const rows = await connection.execute<CopyRow>(LOAD_COPIES, [except, limit, bytes]);
      return rows.map(({ replayId, replayedBy, queue, ...entry }) => ({
        ...entry,
        replay: { id: replayId, by: replayedBy, queue },
      }));
    },

    settle: async (settlements) => {
      await connection.execute(SETTLE, settledColumns(settlements, options.relayId));
    },

    settleCopies: async (settlements) => {
      await connection.execute(SETTLE_COPIES, [
        ...settledColumns(settlements, options.relayId),
        settlements.map(({ entry }) => entry.sequence),
        settlements.map(({ entry }) => entry.replay?.id),
        settlements.map(({ entry }) => entry.replay?.queue),
      ]);
    },

    depth: async () => {
      const counts = { pending: 0, returned: 0, parked: 0 };
      const rows = await connection.db
        .selectFrom('outbox')
        .select([
          'state',
          sql<string>`count(*) filter (where replay_id is null)`.as('live'),
          sql<string>`count(replay_id)`.as('copies'),
        ])
        .groupBy('state')
        .execute();
      for (const row of rows) counts[row.state] = Number(row.live);
      const oldest = await connection.db
        .selectFrom('outbox')
        .select(sql<number>`extract(epoch from now() - recorded_at)::float8`.as('age'))
        .where('state', '=', 'pending')
        .where('replay_id', 'is', null)
        .orderBy('sequence')
        .limit(1)
        .executeTakeFirst();
      return {
        counts,
        oldestPendingS: Math.max(0, oldest?.age ?? 0),
        copies: rows.reduce((sum, row) => sum + Number(row.copies), 0),
      };
    },
  };
}

type CopyRow = Omit<Entry, 'replay'> & {
  replayId: string;
  replayedBy: string;
  queue: string | null;
} & { status: Status };

function settledColumns(settlements: readonly Settlement[], relayId: string): unknown[] {
  return [
    settlements.map(({ entry }) => entry.position),
    settlements.map(({ entry }) => entry.attempts),
    settlements.map(({ next }) => next),
    settlements.map(({ retryInMs }) => retryInMs),
    settlements.map(({ publication }) => publication.result),
    settlements.map(({ publication }) =>
      publication.result === 'confirmed' ? null : publication.detail.slice(0, DETAIL_MAX_LENGTH),
    ),
    settlements.map(({ publication }) => Math.round(publication.durationMs)),
    settlements.map(({ entry }) => entry.source),
    relayId,
  ];
}
