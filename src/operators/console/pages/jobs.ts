// The list of jobs.

import { html } from '../../../web/index.ts';
import { jobHref } from '../view/links.ts';
import { listPage } from '../view/list-page.ts';
import { state } from '../view/states.ts';
import { duration, utc } from '../view/times.ts';

export const jobs = listPage({
  name: 'jobs',
  title: 'Jobs',
  first: ['state', 'source', 'job_id_prefix', 'from', 'to'],
  columns: [
    {
      head: 'Job',
      cell: (job) => html`<a class="id" href="${jobHref(job.source, job.job_id)}">${job.job_id}</a>`,
      form: 'clip',
    },
    { head: 'Source', cell: ({ source }) => source },
    { head: 'State', cell: (job) => state(job.state), form: 'brief' },
    {
      head: 'Progress',
      cell: ({ highest_progress: percent }) => percent !== null && `${percent} %`,
      form: 'number',
    },
    { head: 'First seen (UTC)', cell: (job) => utc(job.first_seen_at), form: 'brief' },
    { head: 'Last seen (UTC)', cell: (job) => utc(job.last_seen_at), form: 'brief' },
    { head: 'Duration', cell: (job) => duration(job.duration_ms), form: 'number' },
  ],
  empty: html`A job appears here with its first accepted delivery. <a href="/console/sources">How to point a sender at this service</a>`,
});
