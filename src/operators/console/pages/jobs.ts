// The list of jobs.

import { html } from '../../../web/index.ts';
import { jobHref } from '../view/links.ts';
import { listPage } from '../view/list-page.ts';
import { state } from '../view/states.ts';
import { idLink } from '../view/texts.ts';
import { duration, span, utc } from '../view/times.ts';

export const jobs = listPage({
  name: 'jobs',
  title: 'Jobs',
  first: ['state', 'source', 'job_id_prefix', 'from', 'to'],
  above: (_page, _visit, { state: asked, stuck_after: seconds = '3600' }) =>
    asked === 'stuck' &&
    html`<p class="hint">A job is stuck if it has no end and was first seen more than ${span(Number(seconds))} ago. Perhaps the sender sent no end, or it is in <a href="/console/quarantine">the quarantine</a>.</p>`,
  columns: [
    {
      head: 'Job',
      cell: (job) => idLink(jobHref(job.source, job.job_id), job.job_id),
      form: 'clip',
    },
    { head: 'Source', cell: ({ source }) => source, form: 'brief' },
    { head: 'State', cell: (job) => state(job.state), form: 'brief' },
    {
      head: 'Highest progress',
      cell: ({ highest_progress: percent }) => percent !== null && `${percent} %`,
      form: 'number',
    },
    { head: 'First seen (UTC)', cell: (job) => utc(job.first_seen_at), form: 'brief' },
    { head: 'Last seen (UTC)', cell: (job) => utc(job.last_seen_at), form: 'brief' },
    { head: 'Duration', cell: (job) => duration(job.duration_ms), form: 'number' },
  ],
  empty: html`A job appears here with its first accepted delivery. <a href="/console/sources">How to point a sender at this service</a>`,
});
