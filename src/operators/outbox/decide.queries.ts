// An operator's decisions on entries of the outbox. Retry: a returned or parked event is pending and due now, with all attempts
// anew, and the relay publishes it as any other. Discard: it leaves the outbox. Park: it is held back, and the later ones of its
// job wait behind it. Replays' copies are not decided on: their replay is paused, resumed or cancelled.
//
// All lock in the order of the relay: batches, held entries, jobs, and the version that the leader reads.

import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely';
import {
  type Database,
  hasEvent,
  holdJobs,
  KEEP_REST,
  type OutboxState,
  tellLeader,
} from '../../ledger/index.ts';
import type { Position } from '../kernel/list/cursor.ts';
import { COUNTED_MAX, SAMPLE_MAX } from '../kernel/order/fields.contract.ts';
import { limitIdleTime, releaseJobs } from '../kernel/order/job-holds.queries.ts';
import type { Order, Selection } from '../kernel/order/order.ts';
import type { Entry } from './contract.ts';
import { findEntries, pickEntries } from './decided-entries.queries.ts';
import type { EntriesFilter, EntryItem, OutboxPreview } from './orders.contract.ts';

export type Decision = 'retry' | 'discard' | 'park';

/** The states that allow a decision, the state after it (none after a discard), and its past tense. */
export const DECISIONS = {
  retry: { from: ['returned', 'parked'], to: 'pending', past: 'retried' },
  discard: { from: ['returned', 'parked'], to: undefined, past: 'discarded' },
  park: { from: ['pending', 'returned'], to: 'parked', past: 'parked' },
} as const satisfies Record<
  Decision,
  { from: readonly OutboxState[]; to: OutboxState | undefined; past: EntryItem['result'] }
>;

export type Decided = {
  /** As they were before, oldest first. */
  readonly decided: readonly Entry[];
  /** By ids: what became of each that this call looked at. One that cannot be decided on keeps back none of the others. */
  readonly items: EntryItem[] | undefined;
  /** Where the next call goes on; undefined if none are left. */
  readonly next: Position | undefined;
};

export async function decide(
  trx: Transaction<Database>,
  decision: Decision,
  order: Order<EntriesFilter>,
): Promise<Decided> {
  const { entries, named, next } = await pickEntries(trx, order, { batches: decision === 'park' });
  const decided = entries.filter((entry) => isAllowed(entry, decision));
  await carryOut(trx, decision, { numbers: decided.map(({ id }) => id), by: order.by });
  return { decided, items: named?.map(([id, entry]) => itemOf(id, entry, decision)), next };
}

/** Changes nothing, and locks nothing. */
export async function previewEntries(
  db: Kysely<Database>,
  decision: Decision,
  selection: Selection<EntriesFilter>,
): Promise<OutboxPreview> {
  const { found, upTo, isAll } = await findEntries(db, selection, COUNTED_MAX + 1);
  const allowed = found.filter((entry) => isAllowed(entry, decision));
  return {
    matched: Math.min(allowed.length, COUNTED_MAX),
    matched_exactly: isAll && allowed.length <= COUNTED_MAX,
    up_to: upTo,
    sample: allowed.slice(0, SAMPLE_MAX),
  };
}

const isAllowed = ({ replay_id: replay, state }: Entry, decision: Decision) =>
  replay === null && (DECISIONS[decision].from as readonly OutboxState[]).includes(state);

function itemOf(id: string, entry: Entry | undefined, decision: Decision): EntryItem {
  const { to, past } = DECISIONS[decision];
  if (entry === undefined) return { id, event_id: null, result: 'not_found', state: null, reason: null };
  const { event_id, state, replay_id: replay } = entry;
  const told = { id, event_id, state, reason: null };
  if (isAllowed(entry, decision)) return { ...told, result: past };
  if (replay !== null) {
    const reason = 'it is a replay’s copy: pause, resume or cancel the replay';
    return { ...told, result: 'wrong_state', reason };
  }
  if (state === to) return { ...told, result: 'unchanged' };
  return { ...told, result: 'wrong_state', reason: `it is ${state}: a ${state} event cannot be ${past}` };
}

type Changing = { readonly numbers: readonly string[]; readonly by: string };

/** A retried or parked event holds its job, so that later ones wait for it. A discarded one may have been the last that did. */
async function carryOut(trx: Transaction<Database>, decision: Decision, changing: Changing): Promise<void> {
  if (changing.numbers.length === 0) return;
  await limitIdleTime(trx);
  const held = sql.raw(decision === 'discard' ? '' : `, ${holdJobs('select source, job_id from changed')}`);
  const { rows } = await sql<{ source: string; job_id: string }>`
    with ${CHANGES[decision](changing)} ${held}
    select source, job_id from changed`.execute(trx);
  if (decision === 'discard') await releaseJobs(trx, rows);
  if (decision === 'park') await tellLeader(trx);
}

/** Of a row `h` of outbox_held: its last error, without who parked it before. Null if there is none. */
const CAUSE = sql`nullif(regexp_replace(h.last_error, '^parked by [^;]*(; )?', ''), '')`;

/** CTEs that change the entries, which are locked. `changed` has them. */
const CHANGES: Readonly<Record<Decision, (changing: Changing) => RawBuilder<unknown>>> = {
  retry: ({ numbers }) => sql`
    changed as (
      update outbox_held set state = 'pending', attempts = 0, due_at = now()
      where sequence = any(${numbers}::bigint[]) returning source, job_id
    )`,
  discard: ({ numbers }) => sql`
    changed as (delete from outbox_held where sequence = any(${numbers}::bigint[]) returning source, job_id)`,
  // Those that stand in batches (outbox_batches_time) are taken out of them.
  park: ({ numbers, by }) => sql`
    event as materialized (select * from events where sequence = any(${numbers}::bigint[])),
    rest as materialized (
      select b.first, array(
        select each from unnest(b.sequences) as each where each <> all(${numbers}::bigint[]) order by each
      ) as sequences
      from outbox_batches b where b.first in (select b.first from event join outbox_batches b on ${hasEvent('event')})
    ),
    ${sql.raw(KEEP_REST)},
    changed as (
      insert into outbox_held as h (
        sequence, source, job_id, status, progress_percentage, late, recorded_at, due_at, state, attempts, last_error
      )
      select sequence, source, job_id, status, progress_percentage, late, recorded_at, recorded_at, 'parked', 1,
        ${`parked by ${by}`}
      from event order by sequence
      on conflict (sequence) do update set
        state = 'parked', attempts = greatest(h.attempts, 1),
        last_error = concat_ws('; ', excluded.last_error, ${CAUSE})
      returning h.source, h.job_id
    )`,
};
