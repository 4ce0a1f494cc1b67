// The quarantine: authentic deliveries that were not understood, why, and the decisions on them.

import { type Content, html } from '../../web/index.ts';
import type { Delivery } from '../deliveries/contract.ts';
import { QuarantineGroups } from '../groups/contract.ts';
import type { Page, Visit } from '../kernel/console/page.ts';
import { byIn, type Group, renderGroups } from '../kernel/group/group.pages.ts';
import { listPage } from '../kernel/list/list.pages.ts';
import { type Cells, pageColumns } from '../kernel/list/looks.pages.ts';
import { orderPages } from '../kernel/order/order.pages.ts';
import { orderHref, tick } from '../kernel/order/selection.pages.ts';
import { forOperators } from '../kernel/view/for-operators.ts';
import { deliveryHref, eventHref, jobHref } from '../kernel/view/links.ts';
import { state } from '../kernel/view/states.ts';
import { type Column, renderTable } from '../kernel/view/table.ts';
import { idLink } from '../kernel/view/texts.ts';
import { utc } from '../kernel/view/times.ts';
import { DeliveriesAnswer, type DeliveryItem, quarantineFilters } from './contract.ts';
import { triedIn } from './trial.pages.ts';

const PATH = '/console/quarantine';

const isOpen = ({ released_at: released, discarded_at: discarded }: Delivery) =>
  released === null && discarded === null;

const CELLS: Cells<'quarantine'> = {
  received_at: (delivery) => html`<a href="${deliveryHref(delivery.id)}">${utc(delivery.received_at)}</a>`,
  job_id: ({ source, job_id: id }) => id !== null && idLink(jobHref(source, id), id),
};

const CHOOSE: Column<Delivery> = {
  head: 'Select',
  cell: (delivery) => isOpen(delivery) && tick(delivery.id, `the delivery of ${delivery.received_at}`),
};
const DECIDED: Column<Delivery> = {
  head: 'Decided',
  cell: (delivery) => decided(delivery),
  isOptional: true,
};
const DECIDE: Column<Delivery> = { head: 'Actions', cell: (delivery) => decisions(delivery), form: 'act' };

const quarantine = listPage({
  name: 'quarantine',
  title: 'Quarantine',
  first: ['state', 'source', 'status', 'from', 'to'],
  cells: CELLS,
  withColumns: (own, { calls }) =>
    calls.may('releaseDeliveries') ? [CHOOSE, ...own, DECIDED, DECIDE] : [...own, DECIDED],
  empty: html`Nothing is waiting. A delivery with a valid signature that we cannot understand, such as one with an unknown status, is held here until somebody decides.`,
  above: (_page, visit, filters) => groups(visit, filters),
  around: (table, { items }, visit, filters) =>
    !visit.calls.may('releaseDeliveries')
      ? html`${table}${items.some(isOpen) && forOperators('Releasing and discarding are')}`
      : html`<form action="${PATH}/release">${table}
<p class="actions"><button>Release selected</button> <button class="drastic" formaction="${PATH}/discard">Discard selected</button>${all(filters)}</p></form>`,
});

const decided = ({
  released_at: released,
  discarded_at: discarded,
  discarded_by: by,
  discard_note: note,
}: Delivery) =>
  released !== null
    ? html`${state('released')} ${utc(released)}`
    : discarded !== null && html`${state('discarded')} ${utc(discarded)} by ${by}: ${note}`;

const decisions = (delivery: Delivery): Content =>
  isOpen(delivery) &&
  html`<a href="${orderHref('quarantine/release', { ids: delivery.id })}">Release</a> <a class="drastic" href="${orderHref('quarantine/discard', { ids: delivery.id })}">Discard</a>`;

/** What was decided on is not decided on again. */
function all({ state: now = 'waiting', ...filters }: Readonly<Record<string, string>>): Content {
  if (now !== 'waiting') return undefined;
  const wanted = { all: 'true', ...filters } as const;
  return html` <a class="button" href="${orderHref('quarantine/release', wanted)}">Release all that match …</a> <a class="button drastic" href="${orderHref('quarantine/discard', wanted)}">Discard all that match …</a>`;
}

const BY = ['reason', 'source'] as const;

/** Above the first page, until one reason is chosen. */
async function groups({ calls, query }: Visit, filters: Readonly<Record<string, string>>): Promise<Content> {
  if (query.has('cursor') || filters['reason'] !== undefined) return undefined;
  const by = byIn(query, BY);
  const found = await calls.call('groupQuarantine', QuarantineGroups, { query: { ...filters, by } });
  const filterOf = ({ value }: Group): Record<string, string> => (value === null ? {} : { [by]: value });
  const { state: now = 'waiting', ...others } = filters;
  return renderGroups({
    path: PATH,
    by,
    choices: BY,
    filters,
    found,
    filterOf,
    actions:
      now === 'waiting' && calls.may('releaseDeliveries')
        ? (group) => {
            const chosen = { all: 'true', ...others, ...filterOf(group) } as const;
            return (
              group.value !== null &&
              html`<a href="${orderHref('quarantine/release', chosen)}">Release all</a> <a class="drastic" href="${orderHref('quarantine/discard', chosen)}">Discard all</a>`
            );
          }
        : undefined,
  });
}

const renderItems = (items: readonly DeliveryItem[]): Content =>
  renderTable<DeliveryItem>({
    caption: 'What became of each',
    columns: [
      {
        head: 'Delivery',
        cell: ({ delivery_id: id }) => html`<a class="id" href="${deliveryHref(id)}">${id}</a>`,
        form: 'name',
      },
      { head: 'Result', cell: ({ result }) => state(result.replaceAll('_', ' ')), form: 'brief' },
      {
        head: 'Event',
        cell: ({ event_id: id }) => id && html`<a class="id" href="${eventHref(id)}">${id}</a>`,
        form: 'name',
      },
      { head: 'Reason', cell: ({ reason }) => reason, form: 'long' },
    ],
    items,
    empty: '',
  });

const { state: _state, ...filters } = quarantineFilters;
const order = {
  filters,
  bound: 'to',
  columns: pageColumns('quarantine', CELLS),
  answer: DeliveriesAnswer,
  renderItems,
} as const;

const release = orderPages<Delivery, DeliveryItem>({
  ...order,
  name: 'quarantine/release',
  trial: { triedIn, instead: { name: 'quarantine/discard', verb: 'Discard' } },
  words: {
    verb: 'Release',
    past: 'released',
    noun: 'delivery',
    effect:
      'Each is read again with the present schemas. Those that are understood now become events and are published; the others stay here.',
  },
});

const discard = orderPages<Delivery, DeliveryItem>({
  ...order,
  name: 'quarantine/discard',
  words: {
    verb: 'Discard',
    past: 'discarded',
    noun: 'delivery',
    effect: 'They leave the quarantine and can no longer be released. They stay in the list of deliveries.',
  },
  needsNote: true,
  isFinal: true,
});

export const quarantinePages: readonly Page[] = [quarantine, ...release, ...discard];
