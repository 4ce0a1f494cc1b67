// A list of webhook deliveries, with what became of the last attempt at each.

import { type Content, type Html, html } from '../../web/index.ts';
import type { NotificationRecord } from '../webhooks/notifications.ts';
import { jobAddress } from './job-table.ts';
import { answer, code, deliveryState, form, number, time } from './shown.ts';
import { DASHBOARD_PATH } from './site.ts';

/** `withJob`: with a column that leads to the job of each. */
export function deliveryTable(
  records: readonly NotificationRecord[],
  empty: Content,
  { withJob = false }: { withJob?: boolean } = {},
): Html {
  if (records.length === 0) return html`<p class="empty">${empty}</p>`;
  return html`<div class="scroll"><table class="list">
<thead><tr><th>Delivery</th><th>Event</th>${withJob && html`<th>Job</th>`}<th>State</th><th class="number">Attempts</th><th>Last answer</th><th>Created</th><th><span class="unseen">Action</span></th></tr></thead>
<tbody>${records.map((record) => row(record, withJob))}</tbody></table></div>`;
}

function row({ notification, state, attempts }: NotificationRecord, withJob: boolean): Html {
  const { id, jobId, kind, createdAt } = notification;
  const last = attempts.at(-1);
  return html`<tr><td data-head="Delivery"><a href="${deliveryAddress(id)}">${code(id)}</a></td>
<td data-head="Event">${kind}</td>
${withJob && html`<td data-head="Job"><a href="${jobAddress(jobId)}">${code(jobId)}</a></td>`}
<td data-head="State">${deliveryState(state)}</td>
<td data-head="Attempts" class="number">${number(last?.attempt ?? 0)}</td>
<td data-head="Last answer">${last === undefined ? html`<span class="dim">none so far</span>` : answer(last)}</td>
<td data-head="Created" class="brief">${time(createdAt)}</td>
<td>${redeliverForm(id, 'plain')}</td></tr>`;
}

export function redeliverForm(id: string, look: 'main' | 'plain'): Html {
  const label = html`Redeliver${look === 'plain' && html`<span class="unseen"> ${id}</span>`}`;
  return form(
    `/deliveries/${encodeURIComponent(id)}/redeliver`,
    html`<button class="${look}">${label}</button>`,
    'actions',
  );
}

export function deliveryAddress(id: string): string {
  return `${DASHBOARD_PATH}/deliveries/${encodeURIComponent(id)}`;
}
