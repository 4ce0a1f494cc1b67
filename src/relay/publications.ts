// What the ledger keeps of an attempt to publish.

import type { Settlement } from './entry.ts';
import type { Publication } from './publisher.ts';

const DETAIL_MAX_LENGTH = 300;

/** Why it was not confirmed; null if it was, or if there was no attempt. */
export function publicationDetail(publication: Publication | undefined): string | null {
  if (publication === undefined || publication.result === 'confirmed') return null;
  return publication.detail.slice(0, DETAIL_MAX_LENGTH);
}

/** Of each attempt: what follows, in how many milliseconds, the result, why it was not confirmed, and how long it took. */
export const attemptColumns = (settlements: readonly Settlement[]): unknown[] => [
  settlements.map(({ next }) => next),
  settlements.map(({ retryInMs }) => retryInMs),
  settlements.map(({ publication }) => publication?.result),
  settlements.map(({ publication }) => publicationDetail(publication)),
  settlements.map(({ publication }) => publication && Math.round(publication.durationMs)),
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
