// What the orders about entries or deliveries have in common. Each names one or many by `ids` or by a `filter`, has a dry run,
// and works page by page. A dry run answers an upper bound: with it in the filter, the order leaves alone what came later.

import { z } from 'zod';
import { orderCursor } from '../list/filters.contract.ts';

/** A preview or a group counts no further: so its cost is bounded, and people read "10,000+". */
export const COUNTED_MAX = 10_000;
export const SAMPLE_MAX = 10;

export const idsOf = (id: z.ZodType<string, string>, max: number) =>
  z
    .array(id)
    .min(1, 'must not be empty')
    .max(max, `must be at most ${max.toLocaleString('en-US')} in one request`)
    .optional()
    .describe(`These, at most ${max}. Each of them is answered.`);

/** How far an order goes. `max`: in one call. */
export const paged = (max: number) => ({
  dry_run: z.boolean().default(false).describe('Only says what would be done.'),
  limit: z.int().min(1).max(max).default(max),
  cursor: orderCursor,
});

/** What a refinement of an order says, and shows. */
export const ONE_OF_BOTH = 'exactly one of ids and filter must be given';
export const namesOne = ({ ids, filter }: { ids?: unknown; filter?: unknown }) =>
  (ids === undefined) !== (filter === undefined);
/** The same in the document. */
export const NAMES_ONE = { oneOf: [{ required: ['ids'] }, { required: ['filter'] }] };

/** The answer: what a call did. */
export const page = <Item extends z.ZodType>(item: Item) =>
  z.object({
    done: z.int().min(0).describe('Those that this call did something to. Others are not counted.'),
    items: z.array(item).optional().describe('With `ids`, and of a release: what became of each.'),
    next_cursor: z.string().nullable().describe('For the next call; null after the last page.'),
  });

/** Of a preview. */
export const counts = {
  matched: z
    .int()
    .min(0)
    .describe(`At most ${COUNTED_MAX.toLocaleString('en-US')}: no further is counted.`),
  matched_exactly: z.boolean().describe('False if there may be more.'),
};
