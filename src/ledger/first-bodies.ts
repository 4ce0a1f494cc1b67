// The bodies by which events were accepted, to judge a conflict by once more, and the correction where it was none. On
// intake both are off the normal path: asked for after the deliveries are recorded, and only where some conflict. A release
// asks for the bodies first, since it holds jobs' locks from its first statement on.

import { byteaArray, int2Array, textArray, uuidArray } from './arrays.ts';
import type { DatabaseConnection, Statement } from './database.ts';
import type { JobEvent } from './event.ts';

type Execute = DatabaseConnection['execute'];

/** An event that deliveries conflict with. */
export type FirstBody = {
  readonly sequence: string;
  /** As the ledger has it. */
  readonly content_hash: Buffer;
  /** The delivery's that was accepted. */
  readonly body: Buffer;
  /** The deliveries that conflict with it. */
  readonly ids: readonly string[];
};

/** What is held in memory of a batch's first bodies, one more apart: two thousand usual ones. */
const BODIES_BYTES = 1024 * 1024;

/** `conflicting`: events by `sequence`, with the `ids` that conflict with each. Locks nothing. */
const firstBodies = (conflicting: string, limit: string) => `
select sequence, content_hash, body, ids
from (
  select e.sequence, e.content_hash, d.body, c.ids,
         sum(d.body_bytes) over (order by e.sequence) - d.body_bytes as bytes_before
  from (${conflicting}) as c
  join events e using (sequence)
  join deliveries d on d.id = e.delivery_id and d.received_at <= e.recorded_at
  where position('\\x5c'::bytea in d.body) > 0
) as found
where bytes_before < ${limit}`;

/** Deliveries by their primary key alone, since a released one came before its event was recorded. */
const OF_DELIVERIES: Statement = {
  name: 'first-bodies',
  text: firstBodies(
    'select event_sequence as sequence, array_agg(id) as ids from deliveries where id = any($1::uuid[]) group by 1',
    '$2',
  ),
};

/** Events by events_dedup_key. */
const OF_EVENTS: Statement = {
  name: 'first-bodies-of-events',
  text: firstBodies(
    `select e.sequence, array_agg(t.id) as ids
     from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::bytea[]) as t (
       id, source, job_id, status, progress, content_hash
     )
     join events e on e.source = t.source and e.job_id = t.job_id and e.status = t.status
       and e.progress_percentage is not distinct from t.progress and e.content_hash <> t.content_hash
     group by 1`,
    '$7',
  ),
};

/**
 * One event a statement, so that it waits for one row and cannot deadlock with a batch. A function of the database, since the
 * role that we run as may not change hashes and outcomes otherwise.
 */
const CORRECT: Statement = {
  name: 'correct-content-hash',
  text: 'select correct_content_hash($1::bigint, $2::bytea, $3::bytea, $4::uuid[]) as "isCorrect"',
};

/**
 * Of the events that these deliveries conflict with, as far as their first bodies are still kept and hold a backslash: without
 * one, JSON.parse cannot have mangled a key. Past the limit of bytes the rest is left out.
 */
export function firstBodiesOf(execute: Execute, ids: readonly string[]): Promise<FirstBody[]> {
  return execute<FirstBody>(OF_DELIVERIES, [ids, BODIES_BYTES]);
}

/** The same of the events that these would conflict with if they were tallied now. */
export function firstBodiesAhead(
  execute: Execute,
  events: readonly { deliveryId: string; source: string; event: JobEvent }[],
): Promise<FirstBody[]> {
  return execute<FirstBody>(OF_EVENTS, [
    uuidArray(events.map(({ deliveryId }) => deliveryId)),
    textArray(events.map(({ source }) => source)),
    textArray(events.map(({ event }) => event.jobId)),
    textArray(events.map(({ event }) => event.status)),
    int2Array(events.map(({ event }) => event.progress)),
    byteaArray(events.map(({ event }) => event.contentHash)),
    BODIES_BYTES,
  ]);
}

/**
 * Gives the event the hash of its content, and makes these conflicts the duplicates that they are.
 * @returns false if the event has a third hash by now: nothing is changed then.
 */
export async function correctContentHash(
  execute: Execute,
  { sequence, content_hash: found }: FirstBody,
  { contentHash, ids }: { contentHash: Buffer; ids: readonly string[] },
): Promise<boolean> {
  const [row] = await execute<{ isCorrect: boolean }>(CORRECT, [sequence, found, contentHash, ids]);
  return row?.isCorrect === true;
}
