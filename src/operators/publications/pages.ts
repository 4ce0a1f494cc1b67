// The list of publications.

import { type Content, html } from '../../web/index.ts';
import { listPage } from '../kernel/list/list.pages.ts';
import { hiddenFields } from '../kernel/view/act.ts';
import { eventHref, jobHref, replayHref } from '../kernel/view/links.ts';
import { CHOOSE_A_FILTER, chooseEvent, replayChosen } from '../kernel/view/replay-these.ts';
import { explained, idLink } from '../kernel/view/texts.ts';
import type { Publication } from './contract.ts';

const CHOOSE = chooseEvent<Publication>(({ event_id: id }) => id);
const FORM_OF_ALL = 'replay-all';

/** A form of its own, since its fields are filters and no ticks. */
const all = (filters: Readonly<Record<string, string>>): Content =>
  Object.keys(filters).length === 0
    ? CHOOSE_A_FILTER
    : html` <button form="${FORM_OF_ALL}">Replay the events of all that match …</button>`;

const formOfAll = (filters: Readonly<Record<string, string>>): Content =>
  Object.keys(filters).length > 0 &&
  html`<form id="${FORM_OF_ALL}" method="post" action="/console/publications/replay">${hiddenFields(filters)}</form>`;

export const publications = listPage({
  name: 'publications',
  title: 'Publications',
  first: ['result', 'source', 'job_id', 'from', 'to'],
  cells: {
    event_id: (item) => idLink(eventHref(item.event_id), item.event_id),
    job_id: (item) => idLink(jobHref(item.source, item.job_id), item.job_id),
    detail: ({ detail }) => explained(detail),
    replay_id: ({ replay_id: id }) =>
      id !== null && html`<a class="id" href="${replayHref(id)}">${id.slice(0, 8)}</a>`,
  },
  withColumns: (own, { calls }) => (calls.may('createReplay') ? [CHOOSE, ...own] : own),
  around: (table, { items }, { calls }, filters) =>
    calls.may('createReplay') && items.length > 0
      ? html`${replayChosen(table, all(filters))}${formOfAll(filters)}`
      : table,
  empty: html`An attempt to publish appears here for each event that the relay sends to RabbitMQ. Events come from <a href="/console/deliveries">deliveries</a>.`,
});
