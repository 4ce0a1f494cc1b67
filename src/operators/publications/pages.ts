// The list of publications.

import { html } from '../../web/index.ts';
import { listPage } from '../kernel/list/list.pages.ts';
import { eventHref, jobHref, replayHref } from '../kernel/view/links.ts';
import { clipped } from '../kernel/view/table.ts';
import { explained, idLink } from '../kernel/view/texts.ts';

export const publications = listPage({
  name: 'publications',
  title: 'Publications',
  first: ['result', 'source', 'job_id', 'from', 'to'],
  cells: {
    event_id: (item) => idLink(eventHref(item.event_id), item.event_id),
    job_id: (item) => idLink(jobHref(item.source, item.job_id), item.job_id),
    detail: ({ detail }) => clipped(explained(detail)),
    replay_id: ({ replay_id: id }) =>
      id !== null && html`<a class="id" href="${replayHref(id)}">${id.slice(0, 8)}</a>`,
  },
  empty: html`An attempt to publish appears here for each event that the relay sends to RabbitMQ. Events come from <a href="/console/deliveries">deliveries</a>.`,
});
