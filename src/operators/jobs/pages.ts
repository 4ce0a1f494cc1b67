// The list of jobs.

import { html } from '../../web/index.ts';
import { listPage } from '../kernel/list/list.pages.ts';
import { jobHref } from '../kernel/view/links.ts';
import { idLink } from '../kernel/view/texts.ts';
import { span } from '../kernel/view/times.ts';
import { STUCK_AFTER_S } from '../../base/time/stuck-after.ts';

export const jobs = listPage({
  name: 'jobs',
  title: 'Jobs',
  first: ['state', 'source', 'job_id_prefix', 'from', 'to'],
  above: (_page, _visit, { state: asked, stuck_after: seconds = String(STUCK_AFTER_S) }) =>
    asked === 'stuck' &&
    html`<p class="hint">A job is stuck if it has reported no end and was first seen more than ${span(Number(seconds))} ago. Perhaps the sender never reported one, or the report is in <a href="/console/quarantine">the quarantine</a>.</p>`,
  cells: { job_id: (job) => idLink(jobHref(job.source, job.job_id), job.job_id) },
  empty: html`A job appears here with its first accepted delivery. <a href="/console/sources">How to point a sender at this service</a>`,
});
