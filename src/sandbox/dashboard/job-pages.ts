// The account's jobs, and one job with its progress and its webhook deliveries.

import { type RequestHandler, Router } from 'express';
import { type Content, type Html, html } from '../../web/index.ts';
import { toCursor } from '../api/cursors.ts';
import { jobSequenceOf } from '../api/job-routes.ts';
import type { Job, JobStatus } from '../jobs/job.ts';
import { deliveryTable } from './delivery-table.ts';
import { jobTable } from './job-table.ts';
import { show } from './layout.ts';
import { at } from './methods.ts';
import { nothingHere } from './page-error.ts';
import { code, foreign, jobState, nextPage, number, time } from './shown.ts';
import { accountOf, DASHBOARD_PATH, type Site } from './site.ts';

export const PAGE_SIZE = 25;
/** Of one job: its events are at most eleven. */
const DELIVERIES_MAX = 50;
const REFRESH_S = 3;
const STATUSES = ['processing', 'completed', 'failed'] as const satisfies readonly JobStatus[];
const JOBS = `${DASHBOARD_PATH}/jobs`;

export function jobPages(site: Site): Router {
  const router = Router({ caseSensitive: true, strict: true });
  at(router, '/jobs', { get: list(site) });
  at(router, '/jobs/:id', { get: read(site) });
  return router;
}

function list(site: Site): RequestHandler<{ id: string }> {
  return ({ query }, response) => {
    const status = STATUSES.find((each) => each === query['status']);
    const cursor = typeof query['cursor'] === 'string' ? query['cursor'] : undefined;
    const page = site.store.jobs.list({
      accountId: accountOf(response).id,
      status,
      limit: PAGE_SIZE,
      before: cursor === undefined ? undefined : jobSequenceOf(cursor),
    });
    const next = page.before === undefined ? undefined : address(status, toCursor('jobs', page.before));
    const content = html`<div class="actions spread"><nav class="filters" aria-label="State">${[undefined, ...STATUSES].map((each) => filter(each, status))}</nav>
<a class="button main" href="${JOBS}/new">New conversion</a></div>
${jobTable(
  page.jobs,
  status === undefined
    ? html`No jobs so far. <a href="${JOBS}/new">Convert the sample clip</a>, or create one
with the API.`
    : `No job is ${status}.`,
)}
${nextPage(next, cursor === undefined, address(status))}`;
    show(site, response, { title: 'Jobs', section: '/jobs', content });
  };
}

function filter(status: JobStatus | undefined, current: JobStatus | undefined): Html {
  return html`<a href="${address(status)}"${status === current && html` aria-current="true"`}>${status ?? 'all'}</a>`;
}

function address(status: JobStatus | undefined, cursor?: string): string {
  const query = new URLSearchParams({ ...(status && { status }), ...(cursor && { cursor }) });
  return query.size === 0 ? JOBS : `${JOBS}?${query.toString()}`;
}

function read(site: Site): RequestHandler<{ id: string }> {
  return ({ params }, response) => {
    const account = accountOf(response);
    const job = site.store.jobs.find(params.id, account.id);
    if (job === undefined) throw nothingHere('job');
    const deliveries = site.notifications.list({
      accountId: account.id,
      jobId: job.job_id,
      limit: DELIVERIES_MAX,
    });
    const isUnderWay =
      job.status === 'processing' ||
      deliveries.some(({ state, attempts }) => state === 'pending' && attempts.length === 0);
    const content = html`<p>${code(job.job_id)}</p>
<section id="progress" data-live="${isUnderWay && 'on'}">
<p class="job-progress">${jobState(job.status)} <progress max="100" value="${job.progress_percentage}" aria-label="Progress of the job"></progress>
<span>${job.progress_percentage} %</span></p>
${job.error_message !== null && html`<div class="notice bad"><p>${code(job.error_code ?? '')}: <bdi>${foreign(job.error_message)}</bdi></p></div>`}
${isUnderWay && html`<p class="dim reload"><a href="${DASHBOARD_PATH}/jobs/${encodeURIComponent(job.job_id)}">Load this page again</a> to see how it goes on.</p>`}
${facts(job)}
</section>
<p class="unseen" role="status" data-said="${job.status === 'processing' ? '' : `The job is ${job.status}.`}"></p>
<section id="deliveries"><h2>Webhook deliveries</h2>
${deliveryTable(deliveries, noDeliveries(job))}
</section>`;
    show(site, response, {
      title: 'Job',
      section: '/jobs',
      content,
      refreshS: isUnderWay ? REFRESH_S : undefined,
    });
  };
}

function noDeliveries(job: Job): Content {
  if (job.webhook_url !== null) return 'None so far. The first is sent when there is progress.';
  return html`None. The job has no <code>webhook_url</code>. Without one, they go to <a href="${DASHBOARD_PATH}/webhooks">the
account’s default address</a>, if it is set.`;
}

function facts(job: Job): Html {
  const rows: readonly (readonly [string, Content])[] = [
    ['Input', [code(job.input_url), ` ${job.input_format}`]],
    ['Output', [code(job.output_url), ` ${job.output_format}`]],
    [
      'Webhooks to',
      job.webhook_url === null
        ? html`<span class="dim">the account’s default address</span>`
        : code(job.webhook_url),
    ],
    ['Created', time(job.created_at)],
    ['Done at about', job.estimated_completion !== null && time(job.estimated_completion)],
    ['Completed', job.completed_at !== null && time(job.completed_at)],
    ['Failed', job.failed_at !== null && time(job.failed_at)],
    ['Took', job.processing_time_seconds !== null && `${number(job.processing_time_seconds)} s`],
    ['Size', job.output_size_bytes !== null && `${number(job.output_size_bytes)} bytes`],
    [
      'Cost',
      job.cost_micros !== null &&
        `${number(job.cost_micros)} micro-units, rounded up to ${number(job.cost_cents ?? 0)} ¢`,
    ],
  ];
  return html`<dl class="facts">${rows
    .filter(([, value]) => value !== false)
    .map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}
