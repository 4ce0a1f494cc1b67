// The quarantine: the filters of its list, and the orders and answers of releases and discards.

import { z } from 'zod';
import { Delivery, deliveryColumns } from '../deliveries/contract.ts';
import { columnsOf } from '../kernel/list/columns.contract.ts';
import { documented, timestamp } from '../kernel/list/fields.contract.ts';
import {
  exactReason,
  job,
  note as noteText,
  plain,
  range,
  reasonFilter,
  source,
  stateFilter,
  statusFilter,
} from '../kernel/list/filters.contract.ts';
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

/** One transaction locks as many jobs. */
export const RELEASED_AT_ONCE = 100;
/** One transaction locks as many deliveries, and writes as many lines to the operator log. */
export const DISCARDED_AT_ONCE = 1_000;

const state = z.enum(['waiting', 'released', 'discarded']);
export type QuarantineState = z.infer<typeof state>;

export const quarantineFilters = {
  source,
  status: statusFilter(plain(128).describe('As it was sent.')),
  reason: reasonFilter(exactReason.describe('Why it is in quarantine, word for word.')),
  ...job,
  ...range,
  state: stateFilter(state.describe('What operators decided; `waiting` where not given.'), {
    unset: 'waiting',
  }),
};

const { state: _state, ...orderFilters } = quarantineFilters;

const filter = z.strictObject(orderFilters).describe('As in the list of the quarantine; empty for all.');
/** In lower case, as they are shown. */
const deliveryId = z.uuid().toLowerCase();

const order = (max: number) => ({ ids: idsOf(deliveryId, max), filter: filter.optional(), ...paged(max) });

export const ReleaseOrder = z
  .strictObject(order(RELEASED_AT_ONCE))
  .refine(namesOne, ONE_OF_BOTH)
  .meta({
    id: 'ReleaseOrder',
    description: 'Which deliveries to release, oldest first.',
    ...documented(NAMES_ONE),
  });

/** What becomes of a delivery that is released, if it is understood now. */
export const UNDERSTOOD = ['accepted', 'duplicate', 'conflict'] as const;

export const DeliveryItem = z
  .object({
    delivery_id: z.uuid(),
    result: z
      .enum([...UNDERSTOOD, 'still_quarantined', 'discarded', 'wrong_state', 'not_found'])
      .describe('Of a release: the outcome with the present schemas. The last two only with `ids`.'),
    event_id: z.string().nullable().describe('Of a release.'),
    reason: z.string().nullable().describe('Why it is still not understood, or cannot be decided on.'),
  })
  .meta({ id: 'DeliveryItem', description: 'What became of a delivery that was decided on.' });

export const DecidedDeliveries = page(DeliveryItem).meta({
  id: 'DecidedDeliveries',
  description: 'How many deliveries have left the quarantine.',
});

const note = noteText.describe('The reason, which is shown with the delivery.');

const IS_DRY_RUN = { properties: { dry_run: { const: true } }, required: ['dry_run'] };

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
  .meta({
    id: 'DiscardOrder',
    description: 'Which deliveries to discard, oldest first, and why.',
    ...documented({ ...NAMES_ONE, anyOf: [{ required: ['note'] }, IS_DRY_RUN] }),
  });

/** Deliveries that a preview of a release tries, and reasons that it tells. */
export const TRIED_MAX = 1_000;
export const REASONS_SHOWN_MAX = 10;

export const Trial = z
  .object({
    tried: z
      .int()
      .min(0)
      .describe(
        `The oldest ones: at most ${TRIED_MAX.toLocaleString('en-US')}, and 8 MiB of bodies (but one at least).`,
      ),
    releasable: z.int().min(0).describe('Those of them that are understood by the present schemas.'),
    reasons: z
      .array(z.object({ reason: z.string(), count: z.int().min(1) }))
      .max(REASONS_SHOWN_MAX)
      .describe('Why the others would stay in quarantine, the most frequent first.'),
  })
  .meta({ id: 'ReleaseTrial', description: 'What a release would come to: nothing is changed by it.' });

export type Trial = z.infer<typeof Trial>;

export const QuarantinePreview = z
  .object({
    ...counts,
    to: timestamp.describe('Put it into the filter of the order: nothing that came later is touched.'),
    sample: z.array(Delivery).max(SAMPLE_MAX).describe('The oldest ones.'),
    trial: Trial.optional().describe('Of a release.'),
  })
  .meta({ id: 'QuarantinePreview', description: 'What a release or a discard would begin with.' });

export type QuarantinePreview = z.infer<typeof QuarantinePreview>;

export const DeliveriesAnswer = z
  .union([DecidedDeliveries, QuarantinePreview])
  .meta({ id: 'DeliveriesAnswer', description: 'What became of them; or what a dry run found.' });

export type QuarantineFilter = z.output<typeof filter>;
export type DeliveryItem = z.infer<typeof DeliveryItem>;

const {
  outcome: _outcome,
  http_status: _answer,
  body_bytes: _size,
  remote_address: _from,
  ...shown
} = deliveryColumns;

export const quarantineColumns = {
  ...shown,
  ...columnsOf<Delivery>()({
    released_at: { head: 'released (UTC)', look: 'time', only: 'terminals' },
    discarded_at: { head: 'discarded (UTC)', look: 'time', only: 'terminals' },
    discarded_by: { head: 'by', look: 'text', only: 'terminals' },
    discard_note: { head: 'note', look: 'text', only: 'terminals' },
  }),
};
