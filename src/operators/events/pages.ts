// The list of events.

import { html } from '../../web/index.ts';
import { listPage } from '../kernel/list/list.pages.ts';
import { deliveryHref, eventHref, jobHref } from '../kernel/view/links.ts';
import { publicationState } from '../kernel/view/states.ts';
import { idLink } from '../kernel/view/texts.ts';

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
  empty: html`An event appears here with each accepted <a href="/console/deliveries">delivery</a>.`,
});
