// What the ledger keeps of an attempt to publish.

import type { DatabaseConnection, Statement } from '../ledger/index.ts';
import type { Settlement } from './entry.ts';
import type { Publication } from './publisher.ts';

const DETAIL_MAX_LENGTH = 300;

/** Why it was not confirmed; null if it was, or if there was no attempt. */
function publicationDetail(publication: Publication | undefined): string | null {
  if (publication === undefined || publication.result === 'confirmed') return null;
  return publication.detail.slice(0, DETAIL_MAX_LENGTH);
}

/** Of each attempt: the result, why it was not confirmed, and how long it took in milliseconds; null if there was none. */
const publicationColumns = (settlements: readonly Settlement[]): unknown[] => [
  settlements.map(({ publication }) => publication?.result),
  settlements.map(({ publication }) => publicationDetail(publication)),
  settlements.map(({ publication }) => publication && Math.round(publication.durationMs)),
];

/** Of each attempt: what follows, in how many milliseconds, and the columns of its publication. */
export const attemptColumns = (settlements: readonly Settlement[]): unknown[] => [
  settlements.map(({ next }) => next),
  settlements.map(({ retryInMs }) => retryInMs),
  ...publicationColumns(settlements),
];

/** As migration 0011 says: so many sequences may share a row. */
const BLOCK_BITS = 10;

/**
 * The end of a statement that records confirmed first attempts, in few rows: one for each source and block of sequences.
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

const RECORD_KEPT: Statement = {
  name: 'publications-kept',
  text: `
insert into publications (published_at, event_sequence, attempt, result, detail, duration_ms, relay_id, source)
select now(), sequence, attempts + 1, result, detail, duration_ms, $7::uuid, source
from unnest($1::bigint[], $2::int[], $3::text[], $4::text[], $5::int[], $6::text[])
  as t (sequence, attempts, result, detail, duration_ms, source)`,
};

/** Attempts that the broker made fail: they do not count, and the entries stay as they are. */
export async function recordKept(
  connection: Pick<DatabaseConnection, 'execute'>,
  kept: readonly Settlement[],
  relayId: string,
): Promise<void> {
  await connection.execute(RECORD_KEPT, [
    kept.map(({ entry }) => entry.sequence),
    kept.map(({ entry }) => entry.attempts),
    ...publicationColumns(kept),
    kept.map(({ entry }) => entry.source),
    relayId,
  ]);
}
