// What the ledger keeps of an attempt to publish.

import type { DatabaseConnection, Statement } from '../ledger/index.ts';
import type { Settlement } from './entry.ts';
import type { Publication } from './publication.ts';

const DETAIL_MAX_LENGTH = 300;

/** Why it was not confirmed; null if it was, or if there was no attempt. */
function publicationDetail(publication: Publication | undefined): string | null {
  if (publication === undefined || publication.result === 'confirmed') return null;
  return publication.detail.slice(0, DETAIL_MAX_LENGTH);
}

/** Of each attempt: the result, why it was not confirmed, how long it took in milliseconds, its number; null if there was none. */
const publicationColumns = (settlements: readonly Settlement[]): unknown[] => [
  settlements.map(({ publication }) => publication?.result),
  settlements.map(({ publication }) => publicationDetail(publication)),
  settlements.map(({ publication }) => publication && Math.round(publication.durationMs)),
  settlements.map(({ number }) => number),
];

/** Of each attempt: what follows, in how many milliseconds, and the columns of its publication. */
export const attemptColumns = (settlements: readonly Settlement[]): unknown[] => [
  settlements.map(({ next }) => next),
  settlements.map(({ retryInMs }) => retryInMs),
  ...publicationColumns(settlements),
];

/** As the migration says: 1,024 sequences may share a row. */
const BLOCK_BITS = 10;

/**
 * Records confirmed first attempts, in few rows: one for each source and block of sequences. Returns how many each row has.
 *
 * @param confirmed a CTE of the statement with sequence, source and duration_ms, one row for each event
 * @param relayId a parameter of the statement, as `$6`
 */
export const insertConfirmed = (confirmed: string, relayId: string): string => `
insert into publication_batches (published_at, relay_id, source, first, sequences, durations_ms)
select now(), ${relayId}::uuid, source, min(sequence), array_agg(sequence order by sequence),
       array_agg(duration_ms order by sequence)
from ${confirmed} group by source, sequence >> ${BLOCK_BITS}
returning cardinality(sequences) as recorded`;

/** A repeat comes within minutes. So the search for what it would repeat ends here, within the newest partitions. */
const REPEATS = `interval '1 hour'`;

/**
 * Attempts of this relay that are not on record yet. Each is looked up by its event: with NOT EXISTS, Postgres may read all
 * publications of the day.
 */
const RECORD_MISSING: Statement = {
  name: 'publications-missing',
  text: `
insert into publications (published_at, event_sequence, attempt, result, detail, duration_ms, relay_attempt, relay_id, source)
select now(), sequence, attempts + 1, result, detail, duration_ms, relay_attempt, $8::uuid, source
from unnest($1::bigint[], $2::int[], $3::text[], $4::text[], $5::int[], $6::bigint[], $7::text[])
  as t (sequence, attempts, result, detail, duration_ms, relay_attempt, source)
where (
  select p.id from publications p
  where p.event_sequence = t.sequence and p.relay_id = $8::uuid and p.relay_attempt = t.relay_attempt
    and p.published_at > now() - ${REPEATS}
  limit 1
) is null and (t.result <> 'confirmed' or t.attempts > 0 or (
  select b.id from publication_batches b
  where b.first between t.sequence >> ${BLOCK_BITS} << ${BLOCK_BITS} and t.sequence and t.sequence = any(b.sequences)
    and b.relay_id = $8::uuid and b.published_at > now() - ${REPEATS}
  limit 1
) is null)`,
};

/** To repeat it changes nothing (R42). */
export async function recordMissing(
  connection: Pick<DatabaseConnection, 'execute'>,
  attempts: readonly Settlement[],
  relayId: string,
): Promise<void> {
  await connection.execute(RECORD_MISSING, [
    attempts.map(({ entry }) => entry.sequence),
    attempts.map(({ entry }) => entry.attempts),
    ...publicationColumns(attempts),
    attempts.map(({ entry }) => entry.source),
    relayId,
  ]);
}
