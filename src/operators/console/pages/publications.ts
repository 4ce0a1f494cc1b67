// The list of publications.

import { html } from '../../../web/index.ts';
import { eventHref, jobHref, replayHref } from '../view/links.ts';
import { listPage } from '../view/list-page.ts';
import { state } from '../view/states.ts';
import { clipped } from '../view/table.ts';
import { explained, id, idLink } from '../view/texts.ts';
import { duration, utc } from '../view/times.ts';

export const publications = listPage({
  name: 'publications',
  title: 'Publications',
  first: ['result', 'source', 'job_id', 'from', 'to'],
  columns: [
    { head: 'Published (UTC)', cell: (item) => utc(item.published_at), form: 'brief' },
    { head: 'Result', cell: ({ result }) => state(result), form: 'brief' },
    { head: 'Event', cell: ({ event_id }) => idLink(eventHref(event_id), event_id), form: 'clip' },
    { head: 'Job', cell: (item) => idLink(jobHref(item.source, item.job_id), item.job_id), form: 'clip' },
    { head: 'Attempt', cell: ({ attempt }) => attempt, form: 'number' },
    { head: 'Took', cell: (item) => duration(item.duration_ms), form: 'number' },
    { head: 'Detail', cell: ({ detail }) => clipped(explained(detail)), form: 'clip', isOptional: true },
    {
      head: 'Replay',
      cell: ({ replay_id, queue }) =>
        replay_id !== null &&
        html`<a class="id" href="${replayHref(replay_id)}">${replay_id.slice(0, 8)}</a>${queue !== null && html` to ${id(queue)}`}`,
      form: 'clip',
      isOptional: true,
    },
  ],
  empty: html`An attempt to publish appears here for each event that the relay sends to RabbitMQ. Events come from <a href="/console/deliveries">deliveries</a>.`,
});
