// The outbox: what is still to be published, why it is not, and the decisions on it.

import type { Entry } from '../../../contract/outbox.ts';
import { type Content, html } from '../../../../web/index.ts';
import type { PageOf } from '../../calls.ts';
import { address, replayHref } from '../../view/links.ts';
import { listPage } from '../../view/list-page.ts';
import { capped, counted } from '../../view/numbers.ts';
import type { Column } from '../../view/table.ts';
import { utc } from '../../view/times.ts';
import { orderHref, tick } from '../order-selection.ts';
import { ENTRY_COLUMNS, OUTBOX } from './entries.ts';
import { outboxGroups } from './groups.ts';

/** Copies of replays are decided on by their replay. */
const isOpen = ({ state: now, replay_id: replay }: Entry) =>
  replay === null && (now === 'returned' || now === 'parked');

const COLUMNS: readonly Column<Entry>[] = [
  ...ENTRY_COLUMNS,
  {
    head: 'Copy of',
    cell: ({ replay_id: id, queue }) =>
      id !== null &&
      html`<a href="${replayHref(id)}" title="${queue === null ? 'to the exchange' : `to the queue ${queue}`}">replay</a>`,
    isOptional: true,
  },
];
const CHOOSE: Column<Entry> = {
  head: 'Choose',
  cell: (entry) => isOpen(entry) && tick(entry.id, entry.event_id),
};
const DECIDE: Column<Entry> = { head: 'Decide', cell: (entry) => decisions(entry), form: 'brief' };

export const outbox = listPage({
  name: 'outbox',
  title: 'Outbox',
  first: ['state', 'source', 'job_id', 'copies'],
  columns: ({ calls }) => (calls.may('retryEntries') ? [CHOOSE, ...COLUMNS, DECIDE] : COLUMNS),
  empty: html`Nothing waits: all events are on the bus. An event stays here until RabbitMQ confirms it.`,
  above: async (page, visit, filters) => html`${countsOf(page)}${await outboxGroups(visit, filters)}`,
  around: (table, { items }, { calls }, filters) =>
    calls.may('retryEntries') && items.length > 0 ? orders(table, items, filters) : table,
});

const decisions = (entry: Entry): Content =>
  isOpen(entry)
    ? html`<a href="${orderHref('/outbox/retry', { ids: entry.id })}">Retry</a> <a href="${orderHref('/outbox/discard', { ids: entry.id })}">Discard</a>`
    : entry.state === 'pending' &&
      entry.replay_id === null &&
      html`<a href="${address(`${OUTBOX}/park`, { id: entry.event_id })}">Park</a>`;

function orders(table: Content, items: readonly Entry[], filters: Readonly<Record<string, string>>): Content {
  if (items.every(({ replay_id: replay }) => replay !== null)) {
    return html`${table}<p class="hint">A replay decides on its copies: open it to resume or cancel it.</p>`;
  }
  const chosen =
    items.some(isOpen) &&
    html`<button>Retry the chosen ones</button> <button formaction="${OUTBOX}/discard">Discard the chosen ones</button>`;
  return html`<form action="${OUTBOX}/retry">${table}
<p class="actions">${chosen}${all(filters)}</p></form>`;
}

/** Only entries that wait for a decision are decided on together, and copies of replays never. */
function all({ state: now, copies, queue, ...filters }: Readonly<Record<string, string>>): Content {
  if ((now !== 'returned' && now !== 'parked') || copies === 'true' || queue !== undefined) {
    return html` <span class="hint">To decide on all that match, choose the state <a href="${address(OUTBOX, { ...filters, state: 'returned' })}">returned</a> or <a href="${address(OUTBOX, { ...filters, state: 'parked' })}">parked</a>.</span>`;
  }
  const wanted = { all: 'true', state: now, ...filters } as const;
  return html` <a class="button" href="${orderHref('/outbox/retry', wanted)}">Retry all that match …</a> <a class="button" href="${orderHref('/outbox/discard', wanted)}">Discard all that match …</a>`;
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
