// The list of events.

import { html } from '../../../../web/index.ts';
import { deliveryHref, eventHref, jobHref } from '../../view/links.ts';
import { listPage } from '../../view/list-page.ts';
import { publicationState, state } from '../../view/states.ts';
import { idLink, seen } from '../../view/texts.ts';
import { utc } from '../../view/times.ts';

export const events = listPage({
  name: 'events',
  title: 'Events',
  first: ['kind', 'source', 'job_id', 'from', 'to'],
  columns: [
    { head: 'Recorded (UTC)', cell: (event) => utc(event.recorded_at), form: 'brief' },
    { head: 'Kind', cell: ({ kind }) => state(kind), form: 'brief' },
    { head: 'Event', cell: (event) => idLink(eventHref(event.id), event.id), form: 'clip' },
    { head: 'Job', cell: (event) => idLink(jobHref(event.source, event.job_id), event.job_id), form: 'clip' },
    { head: 'Error code', cell: (event) => seen(event.error_code), form: 'clip' },
    { head: 'Late', cell: ({ late }) => late && 'late', form: 'brief', isOptional: true },
    { head: 'Repeats', cell: ({ repeats }) => repeats > 0 && repeats, form: 'number', isOptional: true },
    { head: 'On the bus', cell: ({ publication }) => publicationState(publication), form: 'brief' },
    {
      head: 'Made by',
      cell: (event) => html`<a href="${deliveryHref(event.delivery_id)}">delivery</a>`,
      form: 'brief',
    },
  ],
  empty: html`An event appears here with each accepted <a href="/console/deliveries">delivery</a>.`,
});
