// The bodies by which events were accepted, to judge a conflict by once more, and the correction where it was none. Both
// are off the normal path: asked for after the deliveries are recorded, and only where some conflict.

import type { DatabaseConnection, Statement } from './database.ts';

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

/** Deliveries by their primary key alone, since a released one came before its event was recorded. Locks nothing. */
const FIRST_BODIES: Statement = {
  name: 'first-bodies',
  text: `
select sequence, content_hash, body, ids
from (
  select e.sequence, e.content_hash, d.body, c.ids,
         sum(d.body_bytes) over (order by e.sequence) - d.body_bytes as bytes_before
  from (
    select event_sequence as sequence, array_agg(id) as ids from deliveries where id = any($1::uuid[]) group by 1
  ) as c
  join events e using (sequence)
  join deliveries d on d.id = e.delivery_id and d.received_at <= e.recorded_at
  where position('\\x5c'::bytea in d.body) > 0
) as found
where bytes_before < $2`,
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
  return execute<FirstBody>(FIRST_BODIES, [ids, BODIES_BYTES]);
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
