// The orders that retry or discard many entries of the outbox, and their answers.

import { z } from 'zod';
import { digits } from './fields.ts';
import { eventIdText, source } from './filters.ts';
import { counts, idsOf, namesOne, nextCursor, ONE_OF_BOTH, paged, SAMPLE_MAX, whyNot } from './orders.ts';
import { Entry, outboxFilters } from './outbox.ts';

/** One transaction locks as many entries, and writes as many lines to the operator log. */
export const DECIDED_AT_ONCE = 1_000;

const MAX_NUMBER = 2n ** 63n - 1n;
const number = z
  .string()
  .regex(/^\d{1,19}$/, { error: 'must be the number of an entry', abort: true })
  .refine((text) => BigInt(text) <= MAX_NUMBER, 'must be the number of an entry');

/** The states in which an entry waits for an operator. */
const state = z.enum(['returned', 'parked']);

/** Of entries that can be decided on: those have no queue, and are no copies. */
const { job_id, reason } = outboxFilters;
const filter = z
  .strictObject({
    state,
    source: source.optional(),
    job_id,
    reason,
    up_to: number
      .optional()
      .describe('Only entries with this number or a lower one: the `up_to` of a dry run.'),
  })
  .describe('As in the list of the outbox. Copies of replays are not among them.');

const order = {
  ids: idsOf(eventIdText, DECIDED_AT_ONCE).describe('Numbers of entries, or ids of events.'),
  filter: filter.optional(),
  ...paged(DECIDED_AT_ONCE),
};

export const RetryOrder = z
  .strictObject({
    ...order,
    state: state.optional().describe('With `source`: an older form of `filter`.'),
    source: source.optional(),
  })
  .refine(
    ({ ids, filter: given, state: older }) =>
      [ids, given, older].filter((one) => one !== undefined).length === 1,
    'exactly one of ids, filter and state must be given',
  )
  .refine(({ state: older, source: of }) => of === undefined || older !== undefined, {
    path: ['source'],
    error: 'belongs into the filter',
  })
  .meta({ id: 'RetryOrder', description: 'Which entries to retry, oldest first.' });

export const DiscardEntriesOrder = z
  .strictObject(order)
  .refine(namesOne, ONE_OF_BOTH)
  .meta({ id: 'DiscardEntriesOrder', description: 'Which entries to discard, oldest first.' });

export const EntryItem = z
  .object({
    id: z.string().describe('As it was given.'),
    event_id: z.string().nullable().describe('Null if there is no such entry.'),
    result: z
      .enum(['retried', 'discarded', 'unchanged', 'wrong_state', 'not_found'])
      .describe('`unchanged`: it was pending already.'),
    reason: whyNot,
  })
  .meta({ id: 'EntryItem', description: 'What became of an entry that was named.' });

const items = z.array(EntryItem).optional().describe('With `ids`: each of them.');

export const Retried = z
  .object({
    retried: z.int().min(0),
    remaining: z.boolean().describe('There are more: call again with `next_cursor`.'),
    items,
    next_cursor: nextCursor,
  })
  .meta({ id: 'Retried', description: 'How many entries are pending again.' });

export const DiscardedEntries = z
  .object({ discarded: z.int().min(0), items, next_cursor: nextCursor })
  .meta({ id: 'DiscardedEntries', description: 'How many entries have left the outbox.' });

export const OutboxPreview = z
  .object({
    ...counts,
    up_to: digits.describe('Put it into the filter of the order: no entry that came later is touched.'),
    sample: z.array(Entry).max(SAMPLE_MAX).describe('The oldest ones.'),
  })
  .meta({ id: 'OutboxPreview', description: 'What a retry or a discard would begin with.' });

export const RetryAnswer = z
  .union([Retried, OutboxPreview])
  .meta({ id: 'RetryAnswer', description: 'How many are pending again; or what a dry run found.' });

export const DiscardEntriesAnswer = z
  .union([DiscardedEntries, OutboxPreview])
  .meta({ id: 'DiscardEntriesAnswer', description: 'How many have gone; or what a dry run found.' });

export type EntriesFilter = z.output<typeof filter>;
export type EntryItem = z.infer<typeof EntryItem>;
export type OutboxPreview = z.infer<typeof OutboxPreview>;
export type RetryOrder = z.input<typeof RetryOrder>;
export type DiscardEntriesOrder = z.input<typeof DiscardEntriesOrder>;
