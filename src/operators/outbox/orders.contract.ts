// The orders that retry, discard or park entries of the outbox, one or many, and their answers.

import { z } from 'zod';
import { digits, documented, outboxState } from '../kernel/list/fields.contract.ts';
import { eventIdText } from '../kernel/list/filters.contract.ts';
import {
  counts,
  idsOf,
  NAMES_ONE,
  namesOne,
  ONE_OF_BOTH,
  page,
  paged,
  SAMPLE_MAX,
} from '../kernel/order/fields.contract.ts';
import { Entry, outboxFilters } from './contract.ts';

/** One transaction locks as many entries, and writes as many lines to the operator log. */
export const DECIDED_AT_ONCE = 1_000;

const MAX_NUMBER = 2n ** 63n - 1n;
const number = z
  .string()
  .regex(/^\d{1,19}$/, { error: 'must be the number of an entry', abort: true })
  .refine((text) => BigInt(text) <= MAX_NUMBER, 'must be the number of an entry');

/** Of entries that can be decided on: those have no queue, and are no copies. */
const { source, job_id, reason } = outboxFilters;

const order = <const States extends readonly ('pending' | 'returned' | 'parked')[]>(states: States) => ({
  ids: idsOf(eventIdText, DECIDED_AT_ONCE).describe('Numbers of entries, or ids of events.'),
  filter: z
    .strictObject({
      state: z.enum(states),
      source,
      job_id,
      reason,
      up_to: number
        .optional()
        .describe('Only entries with this number or a lower one: the `up_to` of a dry run.'),
    })
    .describe('As in the list of the outbox. Copies of replays are not among them.')
    .optional(),
  ...paged(DECIDED_AT_ONCE),
});

/** The states in which an entry waits for an operator. */
export const WAITING = ['returned', 'parked'] as const;
export const PARKABLE = ['pending', 'returned'] as const;

export const RetryOrder = z
  .strictObject(order(WAITING))
  .refine(namesOne, ONE_OF_BOTH)
  .meta({ id: 'RetryOrder', description: 'Which entries to retry, oldest first.', ...documented(NAMES_ONE) });

export const DiscardEntriesOrder = z
  .strictObject(order(WAITING))
  .refine(namesOne, ONE_OF_BOTH)
  .meta({
    id: 'DiscardEntriesOrder',
    description: 'Which entries to discard, oldest first.',
    ...documented(NAMES_ONE),
  });

export const ParkOrder = z
  .strictObject(order(PARKABLE))
  .refine(namesOne, ONE_OF_BOTH)
  .meta({ id: 'ParkOrder', description: 'Which entries to park, oldest first.', ...documented(NAMES_ONE) });

export const EntryItem = z
  .object({
    id: z.string().describe('As it was given.'),
    event_id: z.string().nullable().describe('Null if there is no such entry.'),
    result: z
      .enum(['retried', 'discarded', 'parked', 'unchanged', 'wrong_state', 'not_found'])
      .describe('`unchanged`: it was in the new state already.'),
    state: outboxState.nullable().describe('The state in which it was. Null if there is no such entry.'),
    reason: z.string().nullable().describe('Why not, if its state does not allow it.'),
  })
  .meta({ id: 'EntryItem', description: 'What became of an entry that was named.' });

export const DecidedEntries = page(EntryItem).meta({
  id: 'DecidedEntries',
  description: 'How many entries were decided on.',
});

export const OutboxPreview = z
  .object({
    ...counts,
    up_to: digits.describe('Put it into the filter of the order: no entry that came later is touched.'),
    sample: z.array(Entry).max(SAMPLE_MAX).describe('The oldest ones.'),
  })
  .meta({ id: 'OutboxPreview', description: 'What an order would begin with.' });

export const EntriesAnswer = z
  .union([DecidedEntries, OutboxPreview])
  .meta({ id: 'EntriesAnswer', description: 'How many were decided on; or what a dry run found.' });

export type EntriesFilter = NonNullable<
  z.output<typeof RetryOrder>['filter'] | z.output<typeof ParkOrder>['filter']
>;
export type EntryItem = z.infer<typeof EntryItem>;
export type OutboxPreview = z.infer<typeof OutboxPreview>;
