// The quarantine: the filters of its list, and the orders and answers of releases and discards.

import { z } from 'zod';
import { Delivery } from './deliveries.ts';
import { timestamp } from './fields.ts';
import { exactReason, flag, job, note as noteText, plain, range, source } from './filters.ts';
import { counts, idsOf, namesOne, nextCursor, ONE_OF_BOTH, paged, SAMPLE_MAX, whyNot } from './orders.ts';

/** One transaction locks as many jobs. */
export const RELEASED_AT_ONCE = 100;
/** One transaction locks as many deliveries, and writes as many lines to the operator log. */
export const DISCARDED_AT_ONCE = 1_000;

const state = z.enum(['waiting', 'released', 'discarded']);
export type QuarantineState = z.infer<typeof state>;

export const quarantineFilters = {
  source: source.optional(),
  status: plain(128).optional().describe('As it was sent.'),
  reason: exactReason.optional().describe('Why it is in quarantine, word for word.'),
  ...job,
  ...range,
  state: state
    .optional()
    .describe('What operators decided; `waiting` if neither this nor `released` is given.'),
  released: flag.optional().describe('`true`: as `state=released`; `false`: as `state=waiting`.'),
};

const { state: _state, released: _released, ...orderFilters } = quarantineFilters;

const filter = z.strictObject(orderFilters).describe('As in the list of the quarantine; empty for all.');
/** In lower case, as they are shown. */
const deliveryId = z.uuid().toLowerCase();

const order = (max: number) => ({ ids: idsOf(deliveryId, max), filter: filter.optional(), ...paged(max) });

export const ReleaseOrder = z
  .strictObject(order(RELEASED_AT_ONCE))
  .refine(namesOne, ONE_OF_BOTH)
  .meta({ id: 'ReleaseOrder', description: 'Which deliveries to release, oldest first.' });

const releaseResult = z.enum(['accepted', 'duplicate', 'conflict', 'still_quarantined']);

export const ReleaseResult = z
  .object({
    delivery_id: z.uuid(),
    result: releaseResult.describe('The outcome with the present schemas.'),
    event_id: z.string().nullable(),
    reason: z.string().nullable().describe('Why it is still not understood.'),
  })
  .meta({ id: 'ReleaseResult', description: 'What became of a quarantined delivery.' });

export const ReleaseItem = ReleaseResult.extend({
  result: z
    .enum([...releaseResult.options, 'wrong_state', 'not_found'])
    .describe('The outcome with the present schemas; the last two only with `ids`.'),
  reason: z.string().nullable().describe('Why it is still not understood, or why it cannot be released.'),
}).meta({ id: 'ReleaseItem', description: 'What became of a delivery that was to be released.' });

export const ReleasePage = z
  .object({ items: z.array(ReleaseItem), next_cursor: nextCursor })
  .meta({ id: 'ReleasePage', description: 'What became of some of them.' });

const note = noteText.describe('The reason, which is shown with the delivery.');

export const Discard = z
  .strictObject({ note })
  .meta({ id: 'Discard', description: 'Why a delivery is discarded.' });

export const DiscardOrder = z
  .strictObject({
    ...order(DISCARDED_AT_ONCE),
    note: note.optional().describe('The reason. Only a dry run needs none.'),
  })
  .refine(namesOne, ONE_OF_BOTH)
  .refine(({ note: given, dry_run: isDry }) => isDry || given !== undefined, {
    path: ['note'],
    error: 'must be given',
  })
  .meta({ id: 'DiscardOrder', description: 'Which deliveries to discard, oldest first, and why.' });

export const DiscardItem = z
  .object({
    delivery_id: z.uuid(),
    result: z.enum(['discarded', 'wrong_state', 'not_found']),
    reason: whyNot,
  })
  .meta({ id: 'DiscardItem', description: 'What became of a delivery that was to be discarded.' });

export const DiscardPage = z
  .object({
    discarded: z.int().min(0).describe('Deliveries that this call discarded.'),
    items: z.array(DiscardItem).optional().describe('With `ids`: each of them.'),
    next_cursor: nextCursor,
  })
  .meta({ id: 'DiscardPage', description: 'How many of them were discarded.' });

export const QuarantinePreview = z
  .object({
    ...counts,
    to: timestamp.describe('Put it into the filter of the order: nothing that came later is touched.'),
    sample: z.array(Delivery).max(SAMPLE_MAX).describe('The oldest ones.'),
  })
  .meta({ id: 'QuarantinePreview', description: 'What a release or a discard would begin with.' });

export type QuarantinePreview = z.infer<typeof QuarantinePreview>;

export const ReleaseAnswer = z
  .union([ReleasePage, QuarantinePreview])
  .meta({ id: 'ReleaseAnswer', description: 'What became of them; or what a dry run found.' });

export const DiscardAnswer = z
  .union([DiscardPage, QuarantinePreview])
  .meta({ id: 'DiscardAnswer', description: 'How many were discarded; or what a dry run found.' });

export type QuarantineFilter = z.output<typeof filter>;
export type ReleaseOrder = z.input<typeof ReleaseOrder>;
export type DiscardOrder = z.input<typeof DiscardOrder>;
export type ReleaseItem = z.infer<typeof ReleaseItem>;
export type DiscardItem = z.infer<typeof DiscardItem>;
