// The list of events.

import { type Content, html } from '../../web/index.ts';
import { listPage } from '../kernel/list/list.pages.ts';
import { address, deliveryHref, eventHref, jobHref } from '../kernel/view/links.ts';
import { CHOOSE_A_FILTER, chooseEvent, replayChosen } from '../kernel/view/replay-these.ts';
import { publicationState } from '../kernel/view/states.ts';
import type { Column } from '../kernel/view/table.ts';
import { idLink } from '../kernel/view/texts.ts';
import type { Event } from './contract.ts';
import { isHeldBack, retryLink } from './held-back.pages.ts';

const CHOOSE = chooseEvent<Event>(({ id }) => id);
const RETRY: Column<Event> = {
  head: 'Decide',
  cell: ({ id, publication }) => isHeldBack(publication) && retryLink(id),
  form: 'brief',
  isOptional: true,
};

const all = (filters: Readonly<Record<string, string>>): Content =>
  Object.keys(filters).length === 0
    ? CHOOSE_A_FILTER
    : html` <a class="button" href="${address('/console/replays/new', filters)}">Replay all that match …</a>`;

export const events = listPage({
  name: 'events',
  title: 'Events',
  first: ['kind', 'source', 'job_id', 'from', 'to'],
  cells: {
    id: (event) => idLink(eventHref(event.id), event.id),
    job_id: (event) => idLink(jobHref(event.source, event.job_id), event.job_id),
    publication: (event) => publicationState(event.publication),
    delivery_id: (event) => html`<a href="${deliveryHref(event.delivery_id)}">delivery</a>`,
  },
  withColumns: (own, { calls }) => [
    ...(calls.may('createReplay') ? [CHOOSE] : []),
    ...own,
    ...(calls.may('retryEntries') ? [RETRY] : []),
  ],
  around: (table, { items }, { calls }, filters) =>
    calls.may('createReplay') && items.length > 0 ? replayChosen(table, all(filters)) : table,
  empty: html`An event appears here with each accepted <a href="/console/deliveries">delivery</a>.`,
});
