// Checks conflicts against the body by which their event was accepted: some are really duplicates. Before json.ts
// existed, V8 could mangle keys with escapes, and such an event has the hash of the mangled content: all its repeats conflict.
// The mangled form depended on what the process had parsed before, so the first body is understood again. It is dropped after
// RETENTION_DAYS; a conflict found later stays one.
//
// The check is off the normal path: the intake makes it after a batch is recorded, and only where deliveries conflict. A
// release makes it before it records, since its first statement already locks jobs.

import type { Logger } from 'pino';
import { describeError } from '../errors.ts';
import { byteaArray, int2Array, textArray, uuidArray } from './arrays.ts';
import { JOIN_ANY_DELIVERY, joinEvent } from './by-key.ts';
import type { DatabaseConnection, Statement } from './database.ts';
import type { JobEvent } from './event.ts';
import type { DeliveryRecord, RecordedDelivery } from './record.ts';
import { type AuthenticBody, understand } from './understand.ts';

type Execute = DatabaseConnection['execute'];

/** The content hashes of deliveries that conflict with their events, by delivery. */
export type Conflicts = ReadonlyMap<string, Buffer>;

/** An event that deliveries conflict with. */
export type FirstBody = {
  readonly sequence: string;
  /** As the ledger has it. */
  readonly content_hash: Buffer;
  /** Of the delivery that was accepted, so its signature matched. */
  readonly body: AuthenticBody;
  /** The deliveries that conflict with it. */
  readonly ids: readonly string[];
};

/** Read into memory for one batch, one body more at most. Two thousand bodies of the usual size. */
const BODIES_BYTES = 1024 * 1024;

/**
 * `conflicting`: events by `sequence`, with the `ids` that conflict with each. Bodies without a backslash are left out, since
 * JSON.parse cannot have mangled a key of theirs. Locks nothing.
 */
const firstBodies = (conflicting: string, limit: string) => `
select sequence, content_hash, body, ids
from (
  select e.sequence, e.content_hash, d.body, c.ids,
         sum(d.body_bytes) over (order by e.sequence) - d.body_bytes as bytes_before
  from (${conflicting}) as c
  ${joinEvent('c.sequence')}
  ${JOIN_ANY_DELIVERY}
  where position('\\x5c'::bytea in d.body) > 0
) as found
where bytes_before < ${limit}`;

/** Finds deliveries by id in every partition: one that was released may be days older than its event. */
const OF_DELIVERIES: Statement = {
  name: 'first-bodies',
  text: firstBodies(
    'select event_sequence as sequence, array_agg(id) as ids from deliveries where id = any($1::uuid[]) group by 1',
    '$2',
  ),
};

/** Finds events by events_dedup_key, to which a range of one job leads (by-key.ts). */
const OF_EVENTS: Statement = {
  name: 'first-bodies-of-events',
  text: firstBodies(
    `select e.sequence, array_agg(t.id) as ids
     from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::bytea[]) as t (
       id, source, job_id, status, progress, content_hash
     )
     cross join lateral (
       select * from events s
       where s.source = t.source and s.job_id between t.job_id and t.job_id and s.status = t.status
         and s.progress_percentage is not distinct from t.progress and s.content_hash <> t.content_hash
       order by s.job_id offset 0
     ) e
     group by 1`,
    '$7',
  ),
};

/**
 * Corrects one event a statement, so that it waits for one row and cannot deadlock with a batch. It calls a function of the
 * database, since the role that we run as may not change hashes and outcomes itself.
 */
const CORRECT: Statement = {
  name: 'correct-content-hash',
  text: 'select correct_content_hash($1::bigint, $2::bytea, $3::bytea, $4::uuid[]) as "isCorrect"',
};

/**
 * Makes the check of a recorded batch: it returns the deliveries with the outcomes that the ledger has then. The check never
 * rejects: if it fails, conflicts stay.
 */
export function createConflictCheck({ execute, log }: { execute: Execute; log: Logger }) {
  return async (
    batch: readonly DeliveryRecord[],
    recorded: RecordedDelivery[],
  ): Promise<RecordedDelivery[]> => {
    const conflicts = new Map<string, Buffer>();
    for (const [index, delivery] of batch.entries()) {
      if (delivery.outcome === 'event' && recorded[index]?.outcome === 'conflict')
        conflicts.set(delivery.id, delivery.event.contentHash);
    }
    if (conflicts.size === 0) return recorded;
    const duplicates = new Set<string>();
    try {
      for await (const id of correctConflicts(execute, conflicts)) duplicates.add(id);
    } catch (error) {
      log.warn({ err: describeError(error) }, 'conflicts could not be checked again and stay conflicts');
    }
    return recorded.map((each, index) =>
      duplicates.has(batch[index]?.id ?? '') ? { ...each, outcome: 'duplicate' } : each,
    );
  };
}

/**
 * Yields the deliveries that have become duplicates in the ledger. One query for all conflicts, and a statement for each
 * event whose hash was wrong. What it yields before it throws is valid.
 */
async function* correctConflicts(
  execute: Execute,
  conflicts: Conflicts,
): AsyncGenerator<string, void, undefined> {
  const found = await execute<FirstBody>(OF_DELIVERIES, [[...conflicts.keys()], BODIES_BYTES]);
  for (const first of found) {
    const alike = findAlike(first, conflicts);
    if (alike !== undefined && (await correctContentHash(execute, first, alike))) yield* alike.ids;
  }
}

/**
 * The first bodies of the events that `events` would conflict with if they were recorded now. Beyond the limit of bytes the rest
 * is left out.
 */
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

/** The conflicts whose content is that of this body; undefined if there are none. */
export function findAlike(
  { body, ids }: FirstBody,
  conflicts: Conflicts,
): { contentHash: Buffer; ids: readonly string[] } | undefined {
  const understood = understand(body);
  if (understood.outcome !== 'event') return undefined; // the present schemas refuse it
  const { contentHash } = understood.event;
  const alike = ids.filter((id) => conflicts.get(id)?.equals(contentHash));
  return alike.length > 0 ? { contentHash, ids: alike } : undefined;
}

/**
 * Gives the event the hash of its content, and turns these conflicts into duplicates.
 * @returns false, with nothing changed, if the event has a third hash by now.
 */
export async function correctContentHash(
  execute: Execute,
  { sequence, content_hash: found }: FirstBody,
  { contentHash, ids }: { contentHash: Buffer; ids: readonly string[] },
): Promise<boolean> {
  const [row] = await execute<{ isCorrect: boolean }>(CORRECT, [sequence, found, contentHash, ids]);
  return row?.isCorrect === true;
}
