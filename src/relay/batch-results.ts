// Writes the results of events that stand in batches of the outbox: whole batches whose events are all confirmed, and single
// events, which leave their batches.

import {
  type DatabaseConnection,
  holdJobs,
  joinEvent,
  KEEP_REST,
  RELEASE_JOBS,
  type Statement,
} from '../ledger/index.ts';
import type { Batch } from './batch.ts';
import type { Settlement } from './entry.ts';
import { attemptColumns, insertConfirmed, recordMissing } from './publications.ts';

type Execute = Pick<DatabaseConnection, 'execute'>;

/** Deletes batches whose events are all confirmed, and records the publications of these. To repeat it changes nothing (R38). */
const SETTLE_WHOLE: Statement = {
  name: 'outbox-settle-whole',
  text: `
with gone as (
  delete from outbox_batches where first = any($1::bigint[]) returning first, sequences
),
left_in as (
  select first, unnest(sequences) as sequence from gone
),
confirmed as (
  select t.* from unnest($2::bigint[], $3::bigint[], $4::int[], $5::text[]) as t (first, sequence, duration_ms, source)
  join left_in using (first, sequence)
)
${insertConfirmed('confirmed', '$6')}`,
};

/** @param batches each is whole, and all of its entries are confirmed */
export async function settleWhole(
  { results, rounds }: { results: Execute; rounds: Execute },
  batches: readonly Batch[],
  relayId: string,
): Promise<void> {
  const confirmed = batches.flatMap((batch) => batch.confirmed());
  const rows = await results.execute<Recorded>(SETTLE_WHOLE, [
    batches.map(({ first }) => first),
    confirmed.map(({ entry }) => entry.batch?.first),
    confirmed.map(({ entry }) => entry.sequence),
    confirmed.map(({ publication }) => Math.round(publication?.durationMs ?? 0)),
    confirmed.map(({ entry }) => entry.source),
    relayId,
  ]);
  if (sum(rows) < confirmed.length) await endElsewhere(rounds, confirmed, relayId);
}

type Recorded = { readonly recorded: number };

const sum = (rows: readonly Recorded[]): number => rows.reduce((total, { recorded }) => total + recorded, 0);

/** Events that are held since they were in flight (R41): an operator has parked them, or a drop has saved their content. */
const END_ELSEWHERE: Statement = {
  name: 'outbox-end-elsewhere',
  text: `
delete from outbox_held where sequence in (
  select sequence from outbox_held where sequence = any($1::bigint[]) order by sequence for update
)
returning source, job_id as "jobId"`,
};

/**
 * Some of these attempts found their events no longer in their batches: an operator or another relay has taken them out, or this
 * is a repeat (R42).
 */
async function endElsewhere(
  connection: Execute,
  attempts: readonly Settlement[],
  relayId: string,
): Promise<void> {
  await recordMissing(connection, attempts, relayId);
  const confirmed = attempts.filter(({ publication }) => publication?.result === 'confirmed');
  const gone = await connection.execute<{ source: string; jobId: string }>(END_ELSEWHERE, [
    confirmed.map(({ entry }) => entry.sequence),
  ]);
  if (gone.length === 0) return;
  await connection.execute(RELEASE_JOBS, [gone.map(({ source }) => source), gone.map(({ jobId }) => jobId)]);
}

/**
 * `taken`: those events that are still in their batches, with what becomes of them (R38). Locks the batches (R46). An array is
 * opened once: to look into it for each event, Postgres would read it anew each time.
 */
const TAKE = `
settled as (
  select * from unnest(
    $1::bigint[], $2::bigint[], $3::text[], $4::int[], $5::text[], $6::text[], $7::int[], $8::bigint[]
  ) as t (first, sequence, next, retry_in_ms, result, detail, duration_ms, relay_attempt)
),
locked as materialized (
  select first, sequences from outbox_batches where first in (select first from settled) order by first for update
),
left_in as (
  select first, unnest(sequences) as sequence from locked
),
taken as materialized (
  select s.*, e.source, e.job_id, e.status, e.progress_percentage, e.late, e.recorded_at
  from settled s join left_in using (first, sequence) ${joinEvent('s.sequence')}
)`;

/** They leave their batches. */
const LEAVE = `
rest as materialized (
  select first, array(
    select each from unnest(sequences) as each where each not in (select sequence from taken) order by each
  ) as sequences
  from locked
),
${KEEP_REST}`;

/** `held`: those that are not confirmed are held from now on, and their jobs with them, except behind a returned one. Locks the jobs. */
const HOLD = `
moved as (
  insert into outbox_held (
    sequence, source, job_id, status, progress_percentage, late, recorded_at, state, attempts, due_at, last_error
  )
  select sequence, source, job_id, status, progress_percentage, late, recorded_at,
         case next when 'return' then 'returned' when 'park' then 'parked' else 'pending' end,
         case next when 'hold' then 0 else 1 end, now() + make_interval(secs => retry_in_ms / 1000.0), detail
  from taken where next <> 'delete'
),
${holdJobs(`select source, job_id from taken where next in ('hold', 'retry', 'park')`)}`;

/**
 * A relay that does not lead any more changes the version (R40). It reads the lease as it was when the statement began, and may
 * wait for locks for longer than the lease lasted. So it looks at the clock once all jobs are locked: `counted` has no row
 * before.
 */
const TELL = `
counted as materialized (
  select count(*) as jobs, clock_timestamp() as at from held
),
told as (
  update outbox_version set version = version + 1 from counted
  where exists (select from taken where next <> 'delete') and not exists (
    select from relay_lease l where l.name = 'outbox' and l.holder = $9::uuid and l.expires_at > counted.at
  )
)`;

/** The publications of `taken`. */
const RECORD = `
unconfirmed as (
  insert into publications (
    published_at, event_sequence, attempt, result, detail, duration_ms, relay_attempt, relay_id, source
  )
  select now(), sequence, 1, result, detail, duration_ms, relay_attempt, $9::uuid, source
  from taken where result <> 'confirmed'
),
confirmed as (
  select * from taken where result = 'confirmed'
),
published as (
  ${insertConfirmed('confirmed', '$9')}
)`;

/**
 * Takes single events out of their batches: confirmed ones leave the outbox, the others are held. Returns how many attempts it
 * has recorded. One statement, since it is over by itself once it has begun: between those of a transaction, a relay that is
 * frozen would keep its locks.
 */
const TAKE_OUT: Statement = {
  name: 'outbox-take-out',
  text: `with ${[TAKE, LEAVE, HOLD, TELL, RECORD].join(',')}
select count(*)::int as recorded from taken where result is not null`,
};

/** @param settlements of entries with a batch */
export async function takeOut(
  connection: Execute,
  settlements: readonly Settlement[],
  relayId: string,
): Promise<void> {
  const rows = await connection.execute<Recorded>(TAKE_OUT, [
    settlements.map(({ entry }) => entry.batch?.first),
    settlements.map(({ entry }) => entry.sequence),
    ...attemptColumns(settlements),
    relayId,
  ]);
  const attempts = settlements.filter(({ publication }) => publication !== undefined);
  if (sum(rows) < attempts.length) await endElsewhere(connection, attempts, relayId);
}
