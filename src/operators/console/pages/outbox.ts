// The outbox: what is still to be published, why it is not, and the decisions on it.

import type { z } from 'zod';
import { OutboxGroups } from '../../contract/groups.ts';
import { Entry, outboxFilters } from '../../contract/outbox.ts';
import { EventDetail } from '../../contract/events.ts';
import { DiscardEntriesAnswer, type EntryItem, RetryAnswer } from '../../contract/outbox-orders.ts';
import { type Content, type Html, html } from '../../../web/index.ts';
import type { PageOf } from '../calls.ts';
import { get, type Page, post, type Visit } from '../page.ts';
import { sameAs } from '../same-as.ts';
import { hiddenFields, keyField, keyIn } from '../view/act.ts';
import { exact } from '../view/numbers.ts';
import { renderFacts } from '../view/facts.ts';
import { address, eventHref, replayHref } from '../view/links.ts';
import { listPage } from '../view/list-page.ts';
import { state } from '../view/states.ts';
import { clipped, type Column, renderTable } from '../view/table.ts';
import { utc } from '../view/times.ts';
import { byIn, renderGroups } from './groups.ts';
import { orderHref, orderPages, tick } from './order.ts';

const PATH = '/console/outbox';

/** Copies of replays are decided on by their replay. */
const isOpen = ({ state: now, replay_id: replay }: Entry) =>
  replay === null && (now === 'returned' || now === 'parked');

const event = ({ event_id: id }: Entry): Html => html`<a class="id" href="${eventHref(id)}">${id}</a>`;

const ENTRY_COLUMNS: readonly Column<Entry>[] = [
  { head: 'Event', cell: event, form: 'clip' },
  { head: 'State', cell: (entry) => state(entry.state), form: 'brief' },
  { head: 'Attempts', cell: ({ attempts }) => exact(attempts), form: 'number' },
  { head: 'Recorded (UTC)', cell: (entry) => utc(entry.recorded_at), form: 'brief' },
  { head: 'Last error', cell: (entry) => clipped(entry.last_error), form: 'clip' },
];

const COLUMNS: readonly Column<Entry>[] = [
  ...ENTRY_COLUMNS,
  {
    head: 'To',
    cell: ({ replay_id: id, queue }) =>
      id !== null && html`<a href="${replayHref(id)}">replay</a>${queue !== null && ` to ${queue}`}`,
  },
  { head: 'Due (UTC)', cell: (entry) => entry.state === 'pending' && utc(entry.due_at), form: 'brief' },
];
const CHOOSE: Column<Entry> = {
  head: 'Choose',
  cell: (entry) => isOpen(entry) && tick(entry.id, entry.event_id),
};
const DECIDE: Column<Entry> = { head: 'Decide', cell: (entry) => decisions(entry), form: 'brief' };

const outbox = listPage({
  name: 'outbox',
  title: 'Outbox',
  first: ['state', 'source', 'job_id', 'copies'],
  columns: ({ calls }) => (calls.may('retryEntries') ? [CHOOSE, ...COLUMNS, DECIDE] : COLUMNS),
  empty: html`Nothing waits: all events are on the bus. An event stays here until RabbitMQ confirms it.`,
  above: async (page, visit, filters) => html`${countsOf(page)}${await groups(visit, filters)}`,
  around: (table, _page, visit, filters) =>
    !visit.calls.may('retryEntries')
      ? table
      : html`<form action="${PATH}/retry">${table}
<p class="actions"><button>Retry the chosen ones</button> <button formaction="${PATH}/discard">Discard the chosen ones</button>${all(filters)}</p></form>`,
});

const decisions = (entry: Entry): Content =>
  isOpen(entry)
    ? html`<a href="${orderHref('/outbox/retry', { ids: entry.id })}">Retry</a> <a href="${orderHref('/outbox/discard', { ids: entry.id })}">Discard</a>`
    : entry.state === 'pending' &&
      entry.replay_id === null &&
      html`<a href="${address(`${PATH}/park`, { id: entry.event_id })}">Park</a>`;

/** Only entries that wait for a decision are decided on together, and copies of replays never. */
function all({ state: now, copies, queue, ...filters }: Readonly<Record<string, string>>): Content {
  if ((now !== 'returned' && now !== 'parked') || copies === 'true' || queue !== undefined) {
    return html` <span class="hint">To decide on all that match, filter by the state returned or parked.</span>`;
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
  const plus = isComplete ? '' : '+';
  const one = (name: 'pending' | 'returned' | 'parked') =>
    html`<a href="${address(PATH, { state: name, copies: 'false' })}">${exact(counts[name])}${plus} ${name}</a>`;
  return html`<p>${one('pending')}${oldest !== null && html`, the oldest of ${utc(oldest)}`} · ${one('returned')} · ${one('parked')} · <a href="${address(PATH, { copies: 'true' })}">${exact(copies)}${plus} copies of replays</a></p>`;
}

type Group = z.output<typeof OutboxGroups>['items'][number];
const BY = ['reason', 'queue', 'source'] as const;

/** Above the first page, until one group is chosen. */
async function groups({ calls, query }: Visit, filters: Readonly<Record<string, string>>): Promise<Content> {
  if (query.has('cursor') || filters['reason'] !== undefined || filters['queue'] !== undefined)
    return undefined;
  const { job_id: _job, ...wanted } = filters;
  const by = byIn(query, BY);
  const found = await calls.call('groupOutbox', OutboxGroups, { query: { ...wanted, by } });
  const filterOf = (group: Group) => ({
    state: group.state,
    copies: String(group.copies),
    ...(group.value !== null && { [by]: group.value }),
  });
  return renderGroups<Group>({
    path: PATH,
    by,
    choices: BY,
    filters: wanted,
    found,
    filterOf,
    before: [
      {
        head: 'State',
        cell: (group) => html`${state(group.state)}${group.copies && ' copies of replays'}`,
        form: 'brief',
      },
    ],
    actions: calls.may('retryEntries') ? (group) => onGroup(group, wanted, filterOf(group)) : undefined,
  });
}

function onGroup(
  { value, copies, state: now }: Group,
  { source }: Readonly<Record<string, string>>,
  { copies: _copies, queue, ...filter }: Readonly<Record<string, string>>,
): Content {
  if (copies || value === null || queue !== undefined || now === 'pending') return undefined;
  const wanted = { all: 'true', ...(source !== undefined && { source }), ...filter } as const;
  return html`<a href="${orderHref('/outbox/retry', wanted)}">Retry all</a> <a href="${orderHref('/outbox/discard', wanted)}">Discard all</a>`;
}

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

const retry = orderPages<z.output<typeof RetryAnswer>, Entry>({
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
    effect: 'They become pending, with all attempts anew, and are published with their original ids.',
  },
});

const discard = orderPages<z.output<typeof DiscardEntriesAnswer>, Entry>({
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

const confirmPark: Page = get(
  '/outbox/park',
  ['parkEntry', 'showEvent'],
  async ({ query, calls, origin }) => {
    const id = query.get('id') ?? '';
    const found = await calls.call('showEvent', EventDetail, { params: { id } });
    return {
      title: 'Park this event?',
      body: html`${renderFacts([
        ['Event', html`<a class="id" href="${eventHref(found.id)}">${found.id}</a>`],
        ['On the bus', state(found.publication)],
        ['Recorded', html`${utc(found.recorded_at)} UTC`],
      ])}
<p>It is not published until somebody retries it, and later events of its job wait behind it.</p>
<form method="post" action="${PATH}/park">${hiddenFields({ id })}${keyField()}<p class="actions"><button class="main">Park it</button> <a href="${PATH}">Back to the list</a></p></form>`,
      sameAs: parkLines(origin, id),
    };
  },
);

const park: Page = post('/outbox/park', ['parkEntry'], async ({ form, calls }) => {
  const id = form.get('id') ?? '';
  const found = await calls.call('parkEntry', Entry, { params: { id }, key: keyIn(form) });
  return {
    title: 'The event is parked',
    body: html`<p>${event(found)} is not published until somebody retries it. <a href="${PATH}">Back to the list</a></p>`,
  };
});

const parkLines = (origin: string, id: string) =>
  sameAs(origin, {
    command: ['outbox', 'park', id],
    path: `/outbox/${encodeURIComponent(id)}/park`,
    body: {},
  });

export const outboxPages: readonly Page[] = [outbox, ...retry, ...discard, confirmPark, park];
