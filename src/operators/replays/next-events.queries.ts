// Reads a replay's next events, and what their copies are made of. Changes nothing.

import { type Kysely, sql } from 'kysely';
import { type Status } from '../../event/index.ts';
import {
  type AuthenticBody,
  type Database,
  JOIN_DELIVERY,
  type OutboxState,
  understand,
} from '../../ledger/index.ts';
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

/** A copy to be made, or the reason why the event is skipped. */
export type Prepared = {
  readonly sequence: string;
  readonly data: string | null;
  readonly occurredAt: string | null;
  readonly reason: string | null;
};

export type Candidate = {
  sequence: string;
  job_id: string;
  status: Status;
  progress_percentage: number | null;
  bytes: number;
};

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

type Source = {
  sequence: string;
  /** The state of its own entry, if that is held. */
  held: OutboxState | null;
  isInBatch: boolean;
  isBehindParked: boolean;
  /** Of its own entry, if that has it. */
  data: string | null;
  occurredAt: string | null;
  body: AuthenticBody | null;
};

/** What each copy is made of, or why the event is skipped. */
export async function prepareCopies(
  db: Kysely<Database>,
  candidates: readonly Candidate[],
): Promise<Prepared[]> {
  const sources = await readSources(db, candidates);
  return candidates.map((candidate) => {
    const source = sources.get(candidate.sequence);
    const reason = source && whyNotNow(source);
    return reason === undefined ? contentOf(candidate, source) : skipped(candidate, reason);
  });
}

/** What the event's message is made of, whether or not it is to be published; or why there is none. */
export async function readContent(db: Kysely<Database>, event: Candidate): Promise<Prepared> {
  const sources = await readSources(db, [event]);
  return contentOf(event, sources.get(event.sequence));
}

/**
 * A message is made from the event's own entry in the outbox, if that has the data, or else from the body of its delivery. A
 * delivery was received at the time at which its event was recorded, except for released ones (index deliveries_released). A
 * batch has the time of its events (outbox_batches_time).
 */
async function readSources(
  db: Kysely<Database>,
  candidates: readonly Candidate[],
): Promise<ReadonlyMap<string, Source>> {
  if (candidates.length === 0) return new Map();
  const sequences = candidates.map(({ sequence }) => sequence);
  const { rows } = await sql<Source>`
    select e.sequence, h.state as held, h.data, h.occurred_at as "occurredAt",
      (
        select b.first from outbox_batches b
        where b.recorded_at = e.recorded_at and e.sequence = any(b.sequences) limit 1
      ) is not null as "isInBatch",
      (
        select p.sequence from outbox_held p -- by index outbox_held_job
        where p.source = e.source and p.job_id = e.job_id and p.state = 'parked' limit 1
      ) is not null as "isBehindParked",
      coalesce(
        h.body, d.body,
        (select r.body from deliveries r
         where d.id is null and r.released_at is not null and r.event_sequence = e.sequence and r.id = e.delivery_id)
      ) as body
    from events e
    left join outbox_held h on h.sequence = e.sequence
    ${sql.raw(JOIN_DELIVERY)}
    where e.sequence = any(${sequences}::bigint[])`.execute(db);
  return new Map(rows.map((row) => [row.sequence, row]));
}

function whyNotNow({ isInBatch, held, isBehindParked }: Source): string | undefined {
  if (isInBatch || held === 'pending') return 'it is still to be published';
  if (held === 'parked') return 'it is parked';
  return isBehindParked ? BEHIND_PARKED : undefined;
}

const skipped = ({ sequence }: Candidate, reason: string): Prepared => ({
  sequence,
  data: null,
  occurredAt: null,
  reason,
});

function contentOf(candidate: Candidate, source: Source | undefined): Prepared {
  const { sequence } = candidate;
  const skip = (reason: string) => skipped(candidate, reason);
  if (source === undefined) return skip('it is not in the ledger any more');
  if (source.data !== null) {
    return { sequence, data: source.data, occurredAt: source.occurredAt, reason: null };
  }
  if (source.body === null) return skip('its body is no longer kept');
  const understood = understand(source.body);
  if (understood.outcome !== 'event') return skip(`it is not understood any more: ${understood.reason}`);
  const { jobId, status, progress, data, occurredAt } = understood.event;
  const isSame =
    jobId === candidate.job_id && status === candidate.status && progress === candidate.progress_percentage;
  return isSame
    ? { sequence, data, occurredAt, reason: null }
    : skip('it is understood as another event now');
}
