// A list of jobs.

import { type Content, type Html, html } from '../../web/index.ts';
import type { Job } from '../jobs/job.ts';
import { CELL_MAX_LENGTH, code, jobState, time } from './shown.ts';
import { DASHBOARD_PATH } from './site.ts';

/** `empty`: what to say if there are none. */
export function jobTable(jobs: readonly Job[], empty: Content): Html {
  if (jobs.length === 0) return html`<p class="empty">${empty}</p>`;
  return html`<div class="scroll"><table class="list">
<thead><tr><th>Job</th><th>State</th><th class="number">Progress</th><th>Conversion</th><th>Created</th><th>Error</th></tr></thead>
<tbody>${jobs.map(row)}</tbody></table></div>`;
}

function row(job: Job): Html {
  return html`<tr><td data-head="Job"><a href="${jobAddress(job.job_id)}">${code(job.job_id)}</a></td>
<td data-head="State">${jobState(job.status)}</td>
<td data-head="Progress" class="number">${job.progress_percentage} %</td>
<td data-head="Conversion">${job.input_format} → ${job.output_format}</td>
<td data-head="Created" class="brief">${time(job.created_at)}</td>
<td data-head="Error" class="long">${job.error_code !== null && code(job.error_code, CELL_MAX_LENGTH)}</td></tr>`;
}

export function jobAddress(jobId: string): string {
  return `${DASHBOARD_PATH}/jobs/${encodeURIComponent(jobId)}`;
}
