// The list of deliveries.

import { html } from '../../../../web/index.ts';
import { deliveryHref, jobHref } from '../../view/links.ts';
import { listPage } from '../../view/list-page.ts';
import { state } from '../../view/states.ts';
import { clipped } from '../../view/table.ts';
import { idLink, seen, size } from '../../view/texts.ts';
import { utc } from '../../view/times.ts';

export const deliveries = listPage({
  name: 'deliveries',
  title: 'Deliveries',
  first: ['outcome', 'source', 'job_id', 'from', 'to'],
  columns: [
    {
      head: 'Received (UTC)',
      cell: (item) => html`<a href="${deliveryHref(item.id)}">${utc(item.received_at)}</a>`,
      form: 'brief',
    },
    { head: 'Outcome', cell: ({ outcome }) => state(outcome), form: 'brief' },
    { head: 'Answer', cell: (item) => item.http_status, form: 'number' },
    { head: 'Source', cell: ({ source }) => source, form: 'brief' },
    {
      head: 'Job',
      cell: ({ source, job_id }) => job_id !== null && idLink(jobHref(source, job_id), job_id),
      form: 'clip',
    },
    {
      head: 'Status as sent',
      cell: ({ status, progress_percentage: percent }) =>
        clipped(seen(percent === null ? status : `${status} ${percent} %`) ?? null),
      form: 'clip',
    },
    { head: 'Body', cell: (item) => size(item.body_bytes), form: 'number' },
    {
      head: 'Reason or error code',
      cell: (item) => clipped(seen(item.reason ?? item.error_code) ?? null),
      form: 'clip',
    },
  ],
  empty: html`A delivery appears here for each request of a sender. <a href="/console/sources">How to point a sender at this service</a>`,
});
