// What an event's message is made of: its data, from its own entry in the outbox or the body of its delivery. Changes nothing.

import { type Kysely, sql } from 'kysely';
import type { Status } from '../../event/index.ts';
import {
  type AuthenticBody,
  type Database,
  JOIN_DELIVERY,
  type OutboxState,
  understand,
} from '../../ledger/index.ts';

/** The event, as far as it is needed here. */
export type Described = {
  sequence: string;
  job_id: string;
  status: Status;
  progress_percentage: number | null;
};

/** The data, or the reason why there is none. */
export type Content = {
  readonly sequence: string;
  readonly data: string | null;
  readonly occurredAt: string | null;
  readonly reason: string | null;
};

/** What an event's data can be made of, and where its own entry is. */
export type Origin = {
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

/** What the event's message is made of, whether or not it is to be published; or why there is none. */
export async function readContent(db: Kysely<Database>, event: Described): Promise<Content> {
  const origins = await readOrigins(db, [event]);
  return contentOf(event, origins.get(event.sequence));
}

/**
 * A message is made from the event's own entry in the outbox, if that has the data, or else from the body of its delivery. A
 * delivery was received at the time at which its event was recorded, except for released ones (index deliveries_released). A
 * batch has the time of its events (outbox_batches_time).
 */
export async function readOrigins(
  db: Kysely<Database>,
  events: readonly Described[],
): Promise<ReadonlyMap<string, Origin>> {
  if (events.length === 0) return new Map();
  const sequences = events.map(({ sequence }) => sequence);
  const { rows } = await sql<Origin>`
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

export const withoutContent = ({ sequence }: Described, reason: string): Content => ({
  sequence,
  data: null,
  occurredAt: null,
  reason,
});

export function contentOf(event: Described, origin: Origin | undefined): Content {
  const { sequence } = event;
  const without = (reason: string) => withoutContent(event, reason);
  if (origin === undefined) return without('it is not in the ledger any more');
  if (origin.data !== null) {
    return { sequence, data: origin.data, occurredAt: origin.occurredAt, reason: null };
  }
  if (origin.body === null) return without('its body is no longer kept');
  const understood = understand(origin.body);
  if (understood.outcome !== 'event') return without(`it is not understood any more: ${understood.reason}`);
  const { jobId, status, progress, data, occurredAt } = understood.event;
  const isSame = jobId === event.job_id && status === event.status && progress === event.progress_percentage;
  return isSame
    ? { sequence, data, occurredAt, reason: null }
    : without('it is understood as another event now');
}
