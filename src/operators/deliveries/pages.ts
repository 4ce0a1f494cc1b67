// The list of deliveries.

import { html } from '../../web/index.ts';
import { listPage } from '../kernel/list/list.pages.ts';
import { deliveryHref, jobHref } from '../kernel/view/links.ts';
import { idLink } from '../kernel/view/texts.ts';
import { utc } from '../kernel/view/times.ts';

export const deliveries = listPage({
  name: 'deliveries',
  title: 'Deliveries',
  first: ['outcome', 'source', 'job_id', 'from', 'to'],
  cells: {
    received_at: (item) => html`<a href="${deliveryHref(item.id)}">${utc(item.received_at)}</a>`,
    job_id: ({ source, job_id: id }) => id !== null && idLink(jobHref(source, id), id),
  },
  empty: html`A delivery appears here for each request of a sender. <a href="/console/sources">How to point a sender at this service</a>`,
});
