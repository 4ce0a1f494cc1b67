// Retrying and discarding entries of the outbox.

import type { z } from 'zod';
import { type Entry, outboxFilters } from '../../../contract/outbox.ts';
import { DiscardEntriesAnswer, type EntryItem, RetryAnswer } from '../../../contract/outbox-orders.ts';
import { type Content, html } from '../../../../web/index.ts';
import { eventHref } from '../../view/links.ts';
import { renderTable } from '../../view/table.ts';
import { orderPages } from '../order.ts';
import { ENTRY_COLUMNS } from './entries.ts';

type Item = z.output<typeof EntryItem>;

const itemsOf = (items: readonly Item[] | undefined): Content =>
  items !== undefined &&
  renderTable<Item>({
    caption: 'What became of each',
    columns: [
      {
        head: 'Event',
        cell: ({ id, event_id: found }) =>
          found === null ? id : html`<a class="id" href="${eventHref(found)}">${found}</a>`,
        form: 'clip',
      },
      { head: 'Result', cell: ({ result }) => result.replaceAll('_', ' '), form: 'brief' },
      { head: 'Why not', cell: ({ reason }) => reason, form: 'long' },
    ],
    items,
    empty: '',
  });

const { state: ofState, source, job_id, reason } = outboxFilters;
const order = {
  filters: { state: ofState, source, job_id, reason },
  bound: 'up_to',
  columns: ENTRY_COLUMNS,
} as const;

export const retryPages = orderPages<z.output<typeof RetryAnswer>, Entry>({
  ...order,
  path: '/outbox/retry',
  operation: 'retryEntries',
  answer: RetryAnswer,
  previewOf: (answer) => previewOf(answer),
  outcomeOf: (answer) => {
    if ('matched' in answer) throw new Error('an order is no dry run');
    return { count: answer.retried, items: itemsOf(answer.items), next: answer.next_cursor };
  },
  words: {
    verb: 'Retry',
    past: 'retried',
    noun: 'event',
    effect:
      'They become pending, with all attempts anew, and are published with their original ids. One that was nacked may be in some queues already: each of its up to five attempts can bring these another copy.',
  },
});

export const discardPages = orderPages<z.output<typeof DiscardEntriesAnswer>, Entry>({
  ...order,
  path: '/outbox/discard',
  operation: 'discardEntries',
  answer: DiscardEntriesAnswer,
  previewOf: (answer) => previewOf(answer),
  outcomeOf: (answer) => {
    if ('matched' in answer) throw new Error('an order is no dry run');
    return { count: answer.discarded, items: itemsOf(answer.items), next: answer.next_cursor };
  },
  words: {
    verb: 'Discard',
    past: 'discarded',
    noun: 'event',
    effect:
      'They leave the outbox and are not published. Later events of their jobs go on. The ledger keeps them, and a replay can publish them.',
  },
  isFinal: true,
});

function previewOf(answer: z.output<typeof RetryAnswer> | z.output<typeof DiscardEntriesAnswer>) {
  if (!('matched' in answer)) throw new Error('a dry run is no order');
  return { ...answer, bound: { up_to: answer.up_to } };
}
