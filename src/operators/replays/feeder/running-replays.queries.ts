// Reads the replays that run, each with its place and how many of its copies are in the outbox.

import { type Kysely, sql } from 'kysely';
import type { Database } from '../../../ledger/index.ts';
import type { RunningReplay } from '../next-events.queries.ts';

export type RunningRow = Omit<RunningReplay, 'selection'> & {
  /** A `Selection` as JSON, as it is stored. */
  readonly selection: string;
  readonly ratePerSecond: number;
  /** How many of its copies are in the outbox. */
  readonly outstanding: number;
};

/** By index replays_state, whose condition is repeated for the planner; counts the copies of each by replay_copies_order. */
export async function findRunning(db: Kysely<Database>): Promise<RunningRow[]> {
  const { rows } = await sql<RunningRow>`
    select id, selection, sources, cursor_sequence as cursor, up_to_sequence as "upTo",
           rate_per_second as "ratePerSecond",
           (select count(*) from replay_copies c where c.replay_id = r.id)::int as outstanding
    from replays r where state in ('running', 'paused') and state = 'running'
    order by created_at, id`.execute(db);
  return rows;
}
