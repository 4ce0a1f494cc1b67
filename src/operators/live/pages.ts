// Deliveries and publications as they happen. The page is a frame that the script fills; one stream of events serves all tabs
// of a browser, and each tab filters for itself.

import { html } from '../../web/index.ts';
import { get } from '../kernel/console/page.ts';
import { sameAs } from '../kernel/console/same-as.ts';
import { filtersIn, renderFilterForm } from '../kernel/list/filter-form.pages.ts';
import { MEANINGS } from '../kernel/view/states.ts';
import { liveFilters } from './contract.ts';

/** More than a person reads back; the lists have them all. */
const ROWS_MAX = 500;

/** A delivery has a kind; `status` says the same and little more. */
const { status: _status, ...FILTERS } = liveFilters;

const COLUMNS = [
  ['Time (UTC)', 'brief'],
  ['What', 'brief'],
  ['Source', 'brief'],
  ['Job', 'name'],
  ['Outcome', 'brief'],
  ['Status', 'brief'],
  ['Details', 'long'],
] as const;

export const live = get('/live', ['listen'], async (visit) => {
  const values = filtersIn(visit.query, FILTERS);
  return {
    title: 'Live',
    body: html`${renderFilterForm({
      action: '/console/live',
      filters: FILTERS,
      first: ['events', 'source', 'outcome', 'result', 'kind', 'job_id'],
      values,
      sources: visit.sources,
    })}
<noscript><p class="notice warn">This page needs JavaScript: it shows what happens while it happens. Without it, read the lists of <a href="/console/deliveries">deliveries</a> and <a href="/console/publications">publications</a>, or run <code>tallyhook live</code>.</p></noscript>
<div id="live" hidden data-filters="${JSON.stringify(values)}" data-meanings="${JSON.stringify(MEANINGS)}" data-rows="${ROWS_MAX}" data-session="${visit.caller.sessionId ?? ''}">
<p class="actions"><button type="button" id="pause" aria-pressed="false">Pause</button> <span role="status" id="listening">Connecting</span> <span id="waiting" class="dim"></span></p>
<div class="scroll"><table class="list" role="table"><caption class="unseen">Deliveries and publications, the newest first</caption>
<thead role="rowgroup"><tr role="row">${COLUMNS.map(([head, form]) => html`<th scope="col" role="columnheader"${form && html` class="${form}"`}>${head}</th>`)}</tr></thead>
<tbody role="rowgroup" id="rows"></tbody></table></div>
<p class="empty" id="nothing">Nothing has happened since you opened this page. A row appears about a second after a delivery came or an event was published. To try it: <code>tallyhook send</code>.</p>
<template id="row"><tr role="row">${COLUMNS.map(([head, form]) => html`<td role="cell" data-head="${head}"${form && html` class="${form}"`}></td>`)}</tr></template>
</div>`,
    sameAs: sameAs(visit.origin, { command: ['live'], path: '/live', query: values }),
  };
});

/** For the script: all that the caller may see, as server-sent events. It ends with the session. */
export const liveStream = get('/live/stream', ['listen'], ({ calls }) => calls.stream('listen'));
