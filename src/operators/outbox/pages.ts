// The outbox: what is still to be published, why it is not, and the decisions on it.

import { type Content, html } from '../../web/index.ts';
import type { PageOf } from '../kernel/console/calls.ts';
import type { Visit } from '../kernel/console/page.ts';
import { listPage } from '../kernel/list/list.pages.ts';
import { orderHref, tick } from '../kernel/order/selection.pages.ts';
import { forOperators } from '../kernel/view/for-operators.ts';
import { address } from '../kernel/view/links.ts';
import { capped, counted } from '../kernel/view/numbers.ts';
import type { Column } from '../kernel/view/table.ts';
import { utc } from '../kernel/view/times.ts';
import { type OrderName } from '../orders.contract.ts';
import type { Entry } from './contract.ts';
import { ENTRY_CELLS, OUTBOX } from './entries.pages.ts';
import { outboxGroups } from './groups.pages.ts';
import { PARKABLE, WAITING } from './orders.contract.ts';

/** Copies of replays are decided on by their replay. */
const isOpen = ({ replay_id: replay }: Entry) => replay === null;

/** What can be decided on an entry, in its state. */
function decisionsIn(state: string): readonly { readonly name: OrderName; readonly verb: string }[] {
  return DECISIONS.filter(({ from }) => from.some((one) => one === state));
}

const DECISIONS = [
  { name: 'outbox/retry', verb: 'Retry', from: WAITING },
  { name: 'outbox/discard', verb: 'Discard', from: WAITING },
  { name: 'outbox/park', verb: 'Park', from: PARKABLE },
] as const;

const CHOOSE: Column<Entry> = {
  head: 'Choose',
  cell: (entry) => isOpen(entry) && tick(entry.id, entry.event_id),
};
const DECIDE: Column<Entry> = { head: 'Decide', cell: (entry) => decisions(entry), form: 'brief' };

export const outbox = listPage({
  name: 'outbox',
  title: 'Outbox',
  first: ['state', 'source', 'job_id', 'copies'],
  cells: ENTRY_CELLS,
  withColumns: (own, { calls }) => (calls.may('retryEntries') ? [CHOOSE, ...own, DECIDE] : own),
  empty: html`Nothing waits: all events are on the bus. An event stays here until RabbitMQ confirms it.`,
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
  return html`<div class="notice bad"><p><strong class="state bad">RabbitMQ ${why}.</strong> What is pending waits for it, and goes on by itself.</p></div>`;
}

const decisions = (entry: Entry): Content =>
  isOpen(entry) &&
  decisionsIn(entry.state).map(
    ({ name, verb }) => html`<a href="${orderHref(name, { ids: entry.id })}">${verb}</a> `,
  );

function orders(table: Content, items: readonly Entry[], filters: Readonly<Record<string, string>>): Content {
  if (!items.some(isOpen)) {
    return html`${table}<p class="hint">A replay decides on its copies: open it to resume or cancel it.</p>`;
  }
  const buttons = DECISIONS.map(
    ({ name, verb }) => html`<button formaction="/console/${name}">${verb} the chosen ones</button> `,
  );
  return html`<form action="${OUTBOX}/retry">${table}
<p class="actions">${buttons}${all(filters)}</p></form>`;
}

/** Only entries of one state are decided on together, and copies of replays never. */
function all({ state: now, copies, queue, ...filters }: Readonly<Record<string, string>>): Content {
  if (now === undefined || copies === 'true' || queue !== undefined) {
    const stateLink = (state: string) =>
      html`<a href="${address(OUTBOX, { ...filters, state })}">${state}</a>`;
    return html` <span class="hint">To decide on all that match, choose the state ${stateLink('pending')}, ${stateLink('returned')} or ${stateLink('parked')}.</span>`;
  }
  const wanted = { all: 'true', state: now, ...filters } as const;
  return decisionsIn(now).map(
    ({ name, verb }) =>
      html` <a class="button" href="${orderHref(name, wanted)}">${verb} all that match …</a>`,
  );
}

function countsOf({
  counts,
  copies,
  counts_complete: isComplete,
  oldest_pending_at: oldest,
}: PageOf<'outbox'>): Content {
  const one = (name: 'pending' | 'returned' | 'parked') =>
    html`<a href="${address(OUTBOX, { state: name, copies: 'false' })}">${capped(counts[name], isComplete)} ${name}</a>`;
  return html`<p>${one('pending')}${oldest !== null && html`, the oldest of ${utc(oldest)}`} · ${one('returned')} · ${one('parked')} · <a href="${address(OUTBOX, { copies: 'true' })}">${counted(copies, 'copy', isComplete)} of replays</a></p>`;
}
