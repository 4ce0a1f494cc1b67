// Which entries of the outbox a retry or a discard of many takes: those of one state and of a filter, oldest first. They are
// returned or parked, so all of them are held. Copies of replays are never among them.

import { type Kysely, type RawBuilder, sql } from 'kysely';
import {
  columns,
  type EntryRow,
  has,
  held,
  inState,
  ofJobCte,
  ofSources,
  toEntry,
} from '../audit/entries.ts';
import { COUNTED_MAX, SAMPLE_MAX } from '../contract/orders.ts';
import type { EntriesFilter, OutboxPreview } from '../contract/outbox-orders.ts';
import type { Database } from '../../ledger/index.ts';

/** Entries of the state that a preview looks at, as many as the outbox's count. */
const LOOKED_AT_MAX = 100_000;

/** Which part of the outbox is still to be worked through, by the numbers of its entries. */
export type EntryPlace = { readonly after: string; readonly upTo: string };

export type Wanted = Pick<EntriesFilter, 'state'> & {
  readonly job_id?: string | undefined;
  readonly reason?: string | undefined;
  /** Null for all. */
  readonly sources: readonly string[] | null;
};

/** A query for the entries `o` between two places, in the order of index outbox_held_waiting. */
export function entriesIn(
  wanted: Wanted,
  { after, upTo }: EntryPlace,
): { from: RawBuilder<unknown>; where: RawBuilder<unknown> } {
  const { state, job_id: jobId } = wanted;
  const ofJob = sql`and o.sequence in (with ${ofJobCte(jobId ?? '', wanted.sources)} select sequence from of_job)`;
  return {
    from: sql`from outbox_held o where ${inState('o', state)} and o.sequence > ${after}::bigint and o.sequence <= ${upTo}::bigint
      ${jobId === undefined ? sql`` : ofJob}`,
    where: sql`${ofSources(wanted.sources)} and ${has('last_error', wanted.reason)}`,
  };
}

/** The whole outbox as it is now, up to the entry `upTo`. Without it, up to the newest one: the calls come to an end. */
export async function wholeOutbox(db: Kysely<Database>, upTo?: string): Promise<EntryPlace> {
  // By the primary keys. Of batches that overlap, the last one may not have the highest number of all.
  const { rows } = await sql<{ upTo: string | null }>`
    select least(
      greatest(
        (select max(sequence) from outbox_held), (select max(position) from replay_copies),
        (select b.sequences[cardinality(b.sequences)] from outbox_batches b order by b.first desc limit 1)
      ), ${upTo ?? null}::bigint
    ) as "upTo"`.execute(db);
  return { after: '0', upTo: rows[0]?.upTo ?? '0' };
}

/** Changes nothing, and locks nothing. */
export async function previewEntries(
  db: Kysely<Database>,
  wanted: Wanted,
  upTo: string | undefined,
): Promise<OutboxPreview> {
  const place = await wholeOutbox(db, upTo);
  const { from, where } = entriesIn(wanted, place);
  const scan = sql`(select o.* ${from} order by o.sequence limit ${LOOKED_AT_MAX}) o`;
  const counted = await sql<{ matched: number; isAll: boolean }>`
    select count(*) filter (where ${where})::int as matched, count(*) < ${LOOKED_AT_MAX} as "isAll"
    from ${scan}`.execute(db);
  const { matched = 0, isAll = true } = counted.rows[0] ?? {};
  const sample = await sql<EntryRow>`
    select ${columns} from (
      ${held} from (select o.* from ${scan} where ${where} order by o.sequence limit ${SAMPLE_MAX}) h
    ) o order by o.number`.execute(db);
  return {
    matched: Math.min(matched, COUNTED_MAX),
    matched_exactly: isAll && matched <= COUNTED_MAX,
    up_to: place.upTo,
    sample: sample.rows.map(toEntry),
  };
}
