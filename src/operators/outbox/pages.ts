// The outbox: what is still to be published, why it is not, and the decisions on it.

import { type Content, html } from '../../web/index.ts';
import type { PageOf } from '../kernel/console/calls.ts';
import type { Visit } from '../kernel/console/page.ts';
import { listPage } from '../kernel/list/list.pages.ts';
import { orderHref, tick } from '../kernel/order/selection.pages.ts';
import { type Figure, renderFigures } from '../kernel/view/figures.ts';
import { forOperators } from '../kernel/view/for-operators.ts';
import { address } from '../kernel/view/links.ts';
import { capped } from '../kernel/view/numbers.ts';
import type { Column } from '../kernel/view/table.ts';
import { utc } from '../kernel/view/times.ts';
import { type OrderName } from '../orders.contract.ts';
import type { Entry } from './contract.ts';
import { ENTRY_CELLS, OUTBOX } from './entries.pages.ts';
import { outboxGroups } from './groups.pages.ts';
import { PARKABLE, WAITING } from './orders.contract.ts';

/** Copies of replays are decided on by their replay. */
const isOpen = ({ replay_id: replay }: Entry) => replay === null;

type Decision = {
  readonly name: OrderName;
  readonly verb: string;
  readonly from: readonly string[];
  readonly isFinal?: true;
};

/** What can be decided on an entry, in its state. */
function decisionsIn(state: string): readonly Decision[] {
  return DECISIONS.filter(({ from }) => from.some((one) => one === state));
}

const DECISIONS = [
  { name: 'outbox/retry', verb: 'Retry', from: WAITING },
  { name: 'outbox/park', verb: 'Park', from: PARKABLE },
  { name: 'outbox/discard', verb: 'Discard', from: WAITING, isFinal: true },
] as const satisfies readonly Decision[];

const CHOOSE: Column<Entry> = {
  head: 'Select',
  cell: (entry) => isOpen(entry) && tick(entry.id, entry.event_id),
};
const DECIDE: Column<Entry> = { head: 'Actions', cell: (entry) => decisions(entry), form: 'act' };

export const outbox = listPage({
  name: 'outbox',
  title: 'Outbox',
  first: ['state', 'source', 'job_id', 'copies'],
  cells: ENTRY_CELLS,
  withColumns: (own, { calls }) => (calls.may('retryEntries') ? [CHOOSE, ...own, DECIDE] : own),
  empty: html`Nothing is waiting: all events are on the bus. An event stays here until RabbitMQ confirms it.`,
  above: async (page, visit, filters) =>
    html`${await brokerNotice(page, visit)}${countsOf(page)}${await outboxGroups(visit, filters)}`,
  around: (table, { items }, { calls }, filters) => {
    if (items.length === 0) return table;
    return calls.may('retryEntries')
      ? orders(table, items, filters)
      : html`${table}${forOperators('Retrying, discarding and parking are')}`;
  },
});

/** Why all of it waits, which no entry tells. */
async function brokerNotice({ counts, copies }: PageOf<'outbox'>, { readiness }: Visit): Promise<Content> {
  const { rabbitmq } = await readiness();
  if (rabbitmq === 'connected' || counts.pending + copies === 0) return undefined;
  const why = rabbitmq === 'blocked' ? 'takes no more messages' : 'cannot be reached';
  return html`<div class="notice bad"><p><strong class="state bad">RabbitMQ ${why}.</strong> Pending events wait for it, and go out by themselves when it is back.</p></div>`;
}

const decisions = (entry: Entry): Content =>
  isOpen(entry) &&
  decisionsIn(entry.state).map(
    ({ name, verb, isFinal }) =>
      html`<a${isFinal && html` class="drastic"`} href="${orderHref(name, { ids: entry.id })}">${verb}</a> `,
  );

function orders(table: Content, items: readonly Entry[], filters: Readonly<Record<string, string>>): Content {
  if (!items.some(isOpen)) {
    return html`${table}<p class="hint">These are copies of replays. Open their replay to resume or cancel it.</p>`;
  }
  const buttons = DECISIONS.map(
    ({ name, verb, isFinal }: Decision) =>
      html`<button${isFinal && html` class="drastic"`} formaction="/console/${name}">${verb} selected</button> `,
  );
  return html`<form action="${OUTBOX}/retry">${table}
<p class="actions">${buttons}${all(filters)}</p></form>`;
}

/** Only entries of one state are decided on together, and copies of replays never. */
function all({ state: now, copies, queue, ...filters }: Readonly<Record<string, string>>): Content {
  if (now === undefined || copies === 'true' || queue !== undefined) {
    const stateLink = (state: string) =>
      html`<a href="${address(OUTBOX, { ...filters, state })}">${state}</a>`;
    return html` <span class="hint">To act on all that match, filter by one state: ${stateLink('pending')}, ${stateLink('returned')} or ${stateLink('parked')}.</span>`;
  }
  const wanted = { all: 'true', state: now, ...filters } as const;
  return decisionsIn(now).map(
    ({ name, verb, isFinal }) =>
      html` <a class="button${isFinal && ' drastic'}" href="${orderHref(name, wanted)}">${verb} all that match …</a>`,
  );
}

function countsOf({
  counts,
  copies,
  counts_complete: isComplete,
  oldest_pending_at: oldest,
}: PageOf<'outbox'>): Content {
  const one = (name: 'pending' | 'returned' | 'parked', more?: Content): Figure => ({
    value: capped(counts[name], isComplete),
    name,
    href: address(OUTBOX, { state: name, copies: 'false' }),
    isDue: name !== 'pending' && counts[name] > 0,
    more,
  });
  return renderFigures([
    one('pending', oldest !== null && html`oldest: ${utc(oldest)}`),
    one('returned'),
    one('parked'),
    {
      value: capped(copies, isComplete),
      name: copies === 1 && isComplete ? 'copy of replays' : 'copies of replays',
      href: address(OUTBOX, { copies: 'true' }),
    },
  ]);
}
