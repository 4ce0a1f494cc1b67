// Retrying, discarding and parking entries of the outbox.

import { type Content, html } from '../../web/index.ts';
import type { Page } from '../kernel/console/page.ts';
import { pageColumns } from '../kernel/list/looks.pages.ts';
import { orderPages } from '../kernel/order/order.pages.ts';
import { eventHref } from '../kernel/view/links.ts';
import { renderTable } from '../kernel/view/table.ts';
import { type Entry, outboxFilters } from './contract.ts';
import { ENTRY_CELLS } from './entries.pages.ts';
import { EntriesAnswer, type EntryItem } from './orders.contract.ts';

const renderItems = (items: readonly EntryItem[]): Content =>
  renderTable<EntryItem>({
    caption: 'What became of each',
    columns: [
      {
        head: 'Event',
        cell: ({ id, event_id: found }) =>
          found === null ? id : html`<a class="id" href="${eventHref(found)}">${found}</a>`,
        form: 'name',
      },
      { head: 'Was', cell: ({ state }) => state, form: 'brief' },
      { head: 'Result', cell: ({ result }) => result.replaceAll('_', ' '), form: 'brief' },
      { head: 'Reason', cell: ({ reason }) => reason, form: 'long' },
    ],
    items,
    empty: '',
  });

const { state: ofState, source, job_id, reason } = outboxFilters;
const order = {
  filters: { state: ofState, source, job_id, reason },
  bound: 'up_to',
  columns: pageColumns('outbox', ENTRY_CELLS),
  answer: EntriesAnswer,
  renderItems,
} as const;

const retry = orderPages<Entry, EntryItem>({
  ...order,
  name: 'outbox/retry',
  words: {
    verb: 'Retry',
    past: 'retried',
    noun: 'event',
    effect:
      'They become pending again with a fresh set of attempts, and keep their original ids. One that was nacked may be in some queues already: each of its attempts, up to five, can put another copy there.',
  },
});

const discard = orderPages<Entry, EntryItem>({
  ...order,
  name: 'outbox/discard',
  words: {
    verb: 'Discard',
    past: 'discarded',
    noun: 'event',
    effect:
      'They leave the outbox and are not published. Later events of their jobs are published. The ledger keeps them, and a replay can publish them.',
  },
  isFinal: true,
});

const park = orderPages<Entry, EntryItem>({
  ...order,
  name: 'outbox/park',
  words: {
    verb: 'Park',
    past: 'parked',
    noun: 'event',
    effect:
      'They are not published until somebody retries them, and later events of their jobs wait behind them. One that is being published now may still arrive.',
  },
});

export const outboxOrderPages: readonly Page[] = [...park, ...retry, ...discard];
