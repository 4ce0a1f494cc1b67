// Reads a replay's next events, and what their copies are made of. Changes nothing.

import { type Kysely, sql } from 'kysely';
import { type Database, JOIN_DELIVERY } from '../../ledger/index.ts';
import {
  type Content,
  contentOf,
  type Described,
  type Origin,
  readOrigins,
  withoutContent,
} from '../events/content.queries.ts';
import { type Selection, selected } from './selection.queries.ts';

export type RunningReplay = {
  readonly id: string;
  readonly selection: Selection;
  readonly sources: readonly string[] | null;
  readonly cursor: string;
  readonly upTo: string;
};

/** Why an event is skipped whose job has a parked one: its copy would wait for an operator's decision. */
export const BEHIND_PARKED = 'an event of its job is parked';

/** `bytes`: of its body. */
export type Candidate = Described & { readonly bytes: number };

/** By the primary key of `events`. The size of each body is one look-up in `deliveries`. */
export async function nextEvents(
  db: Kysely<Database>,
  { selection, sources, cursor }: RunningReplay,
  { end, limit }: { end: string; limit: number },
): Promise<Candidate[]> {
  const { rows } = await sql<Candidate>`
    select e.sequence, e.job_id, e.status, e.progress_percentage, coalesce(d.body_bytes, 0) as bytes
    from (
      select t.* from events t
      where t.sequence > ${cursor}::bigint and t.sequence <= ${end}::bigint and ${selected(selection, sources)}
      order by t.sequence limit ${limit}
    ) as e
    ${sql.raw(JOIN_DELIVERY)}
    order by e.sequence`.execute(db);
  return rows;
}

/** What each copy is made of, or why the event is skipped. */
export async function prepareCopies(
  db: Kysely<Database>,
  candidates: readonly Candidate[],
): Promise<Content[]> {
  const origins = await readOrigins(db, candidates);
  return candidates.map((candidate) => {
    const origin = origins.get(candidate.sequence);
    const reason = origin && whyNotNow(origin);
    return reason === undefined ? contentOf(candidate, origin) : withoutContent(candidate, reason);
  });
}

function whyNotNow({ isInBatch, held, isBehindParked }: Origin): string | undefined {
  if (isInBatch || held === 'pending') return 'it has not been published yet';
  if (held === 'parked') return 'it is parked';
  return isBehindParked ? BEHIND_PARKED : undefined;
}
