// The quarantine: the filters of its list, and the orders and answers of releases and discards.

import { z } from 'zod';
import { Delivery } from './deliveries.ts';
import { timestamp } from './fields.ts';
import { flag, job, note as noteText, orderCursor, plain, range, source } from './filters.ts';

/** One transaction locks as many jobs. */
export const RELEASED_AT_ONCE = 100;
/** One transaction locks as many deliveries, and writes as many lines to the operator log. */
export const DISCARDED_AT_ONCE = 1_000;
export const DISCARD_SAMPLE_MAX = 10;

const state = z.enum(['waiting', 'released', 'discarded']);
export type QuarantineState = z.infer<typeof state>;

export const quarantineFilters = {
  source: source.optional(),
  status: plain(128).optional().describe('As it was sent.'),
  ...job,
  ...range,
  state: state
    .optional()
    .describe('What operators decided; `waiting` if neither this nor `released` is given.'),
  released: flag.optional().describe('`true`: as `state=released`; `false`: as `state=waiting`.'),
};

const { state: _state, released: _released, ...orderFilters } = quarantineFilters;

const filter = z.strictObject(orderFilters).describe('As in the list of the quarantine; empty for all.');

export const ReleaseOrder = z
  .strictObject({
    filter,
    limit: z.int().min(1).max(RELEASED_AT_ONCE).default(RELEASED_AT_ONCE),
    cursor: orderCursor,
  })
  .meta({ id: 'ReleaseOrder', description: 'Which deliveries to release, oldest first.' });

export const ReleaseResult = z
  .object({
    delivery_id: z.uuid(),
    result: z
      .enum(['accepted', 'duplicate', 'conflict', 'still_quarantined'])
      .describe('The outcome with the present schemas.'),
    event_id: z.string().nullable(),
    reason: z.string().nullable().describe('Why it is still not understood.'),
  })
  .meta({ id: 'ReleaseResult', description: 'What became of a quarantined delivery.' });

export const ReleasePage = z
  .object({
    items: z.array(ReleaseResult),
    next_cursor: z.string().nullable().describe('For the next call; null after the last page.'),
  })
  .meta({ id: 'ReleasePage', description: 'What became of some of them.' });

const note = noteText.describe('The reason, which is shown with the delivery.');

export const Discard = z
  .strictObject({ note })
  .meta({ id: 'Discard', description: 'Why a delivery is discarded.' });

export const DiscardOrder = z
  .strictObject({
    filter,
    note: note.optional().describe('The reason. Only a dry run needs none.'),
    dry_run: z.boolean().default(false).describe('Only says what would be discarded.'),
    limit: z.int().min(1).max(DISCARDED_AT_ONCE).default(DISCARDED_AT_ONCE),
    cursor: orderCursor,
  })
  .refine(({ note: given, dry_run: isDry }) => isDry || given !== undefined, {
    path: ['note'],
    error: 'must be given',
  })
  .meta({ id: 'DiscardOrder', description: 'Which deliveries to discard, oldest first, and why.' });

export const DiscardPage = z
  .object({
    discarded: z.int().min(0).describe('Deliveries that this call discarded.'),
    next_cursor: z.string().nullable().describe('For the next call; null after the last page.'),
  })
  .meta({ id: 'DiscardPage', description: 'How many of them were discarded.' });

export const DiscardPreview = z
  .object({
    matched: z.int().min(0),
    matched_exactly: z
      .boolean()
      .describe('False if more wait in quarantine than were looked at, so that there may be more.'),
    to: timestamp.describe('Put it into the filter of the order: nothing that came later is discarded.'),
    sample: z.array(Delivery).max(DISCARD_SAMPLE_MAX).describe('The oldest ones.'),
  })
  .meta({ id: 'DiscardPreview', description: 'What a discard would begin with.' });

export type DiscardPreview = z.infer<typeof DiscardPreview>;

export const DiscardAnswer = z
  .union([DiscardPage, DiscardPreview])
  .meta({ id: 'DiscardAnswer', description: 'How many were discarded; or what a dry run found.' });

export type QuarantineFilter = z.output<typeof filter>;
export type ReleaseOrder = z.input<typeof ReleaseOrder>;
export type DiscardOrder = z.input<typeof DiscardOrder>;
