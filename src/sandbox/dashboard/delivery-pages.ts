// The webhooks of an account: a list, and one with its attempts and the body that was signed. *Redeliver* sends it once more.

import { type RequestHandler, type Response, Router } from 'express';
import { escapeInvisible } from '../../base/text/invisible-characters.ts';
import { type Html, html, readForm, seeOther } from '../../web/index.ts';
import { INVALID_CURSOR, ApiError } from '../api/errors.ts';
import { fromCursor, toCursor } from '../api/cursors.ts';
import type { Attempt, NotificationRecord } from '../webhooks/notifications.ts';
import { sign, SIGNATURE_HEADER } from '../webhooks/signature.ts';
import { deliveryAddress, deliveryTable, redeliverForm } from './delivery-table.ts';
import { PAGE_SIZE } from './job-pages.ts';
import { jobAddress } from './job-table.ts';
import { show } from './layout.ts';
import { at } from './methods.ts';
import { nothingHere } from './page-error.ts';
import { answer, code, deliveryState, nextPage, number, time } from './shown.ts';
import { accountOf, DASHBOARD_PATH, type Site } from './site.ts';

const DELIVERIES = `${DASHBOARD_PATH}/deliveries`;
const REFRESH_S = 2;

export function deliveryPages(site: Site): Router {
  const router = Router({ caseSensitive: true, strict: true });
  at(router, '/deliveries', { get: list(site) });
  at(router, '/deliveries/:id', { get: read(site) });
  at(router, '/deliveries/:id/body', { get: download(site) });
  at(router, '/deliveries/:id/redeliver', { post: redeliver(site) });
  return router;
}

function list(site: Site): RequestHandler<{ id: string }> {
  return ({ query }, response) => {
    const cursor = typeof query['cursor'] === 'string' ? query['cursor'] : undefined;
    const before = cursor === undefined ? undefined : findOwn(site, response, positionOf(cursor));
    const found = site.notifications.list({
      accountId: accountOf(response).id,
      limit: PAGE_SIZE + 1, // one more shows whether there is a next page
      ...(before !== undefined && { before: before.notification.id }),
    });
    const shown = found.slice(0, PAGE_SIZE);
    const last = found.length > PAGE_SIZE ? shown.at(-1) : undefined;
    const next = last && `${DELIVERIES}?cursor=${toCursor('deliveries', last.notification.id)}`;
    const empty = html`No webhooks so far. They are sent for jobs with a <code>webhook_url</code>, and for all jobs if the account has
<a href="${DASHBOARD_PATH}/webhooks">a default address</a>.`;
    const content = html`${deliveryTable(shown, empty, { withJob: true })}
${nextPage(next, cursor === undefined, DELIVERIES)}`;
    show(site, response, { title: 'Webhook deliveries', section: '/deliveries', content });
  };
}

function read(site: Site): RequestHandler<{ id: string }> {
  return ({ params, query }, response) => {
    const found = findOwn(site, response, params.id);
    const { notification, state, attempts } = found;
    const made = attempts.at(-1)?.attempt ?? 0;
    // After a redelivery: the attempts that there were before it.
    const isUnderWay = made === 0 || (query['after'] !== undefined && made <= Number(query['after']));
    const content = html`<p>${code(notification.id)}</p>
<section id="attempts" data-live="${isUnderWay && 'on'}">
<dl class="facts">
<dt>Event</dt><dd>${notification.kind}</dd>
<dt>Job</dt><dd><a href="${jobAddress(notification.jobId)}">${code(notification.jobId)}</a></dd>
<dt>To</dt><dd>${code(notification.url)}</dd>
<dt>State</dt><dd>${deliveryState(state)}</dd>
<dt>Created</dt><dd>${time(notification.createdAt)}</dd>
</dl>
<h2>Attempts</h2>
${
  isUnderWay &&
  html`<p class="dim"><span class="state idle">An attempt is on its way.</span> <a href="${deliveryAddress(notification.id)}?after=${made}">Load
this page again</a> to see its answer.</p>`
}
${attemptTable(attempts)}
</section>
<div class="actions">${redeliverForm(notification.id, 'main')}
<span class="hint">One more attempt, now, with the same bytes, in any state.</span></div>
<section><h2>Body that was signed</h2>
${body(site, found)}
</section>`;
    show(site, response, {
      title: 'Webhook delivery',
      section: '/deliveries',
      content,
      refreshS: isUnderWay ? REFRESH_S : undefined,
    });
  };
}

function attemptTable(attempts: readonly Attempt[]): Html {
  if (attempts.length === 0) return html`<p class="empty">No attempt so far.</p>`;
  return html`<div class="scroll"><table class="list few">
<thead><tr><th class="number">Attempt</th><th>Answer</th><th class="number">Took</th><th>Started</th></tr></thead>
<tbody>${attempts.toReversed().map(
    (attempt) => html`<tr><td data-head="Attempt" class="number">${number(attempt.attempt)}</td>
<td data-head="Answer">${answer(attempt)}</td><td data-head="Took" class="number">${number(attempt.durationMs)} ms</td>
<td data-head="Started" class="brief">${time(attempt.startedAt)}</td></tr>`,
  )}</tbody></table></div>`;
}

function body(
  { accounts }: Site,
  { notification: { id, accountId, body: bytes } }: NotificationRecord,
): Html {
  const text = bytes.toString('utf8');
  const shown = escapeInvisible(text);
  return html`<pre class="wrapped" tabindex="0" aria-label="Body"><code>${shown}</code></pre>
${shown !== text && html`<p class="hint">Characters that cannot be seen are written as \\u escapes here. The file below has the bytes.</p>`}
<p class="hint">${number(bytes.length)} bytes. With the account’s present secret their signature is</p>
<pre class="wrapped" tabindex="0" aria-label="Signature"><code>${SIGNATURE_HEADER}: ${sign(accounts.signingSecret(accountId), bytes)}</code></pre>
<p class="actions"><a class="button" href="${deliveryAddress(id)}/body" download>Download the bytes</a></p>`;
}

function download(site: Site): RequestHandler<{ id: string }> {
  return ({ params }, response) => {
    const { notification } = findOwn(site, response, params.id);
    response
      .attachment(`${notification.id.replaceAll(/\W/g, '')}.json`)
      .type('application/octet-stream')
      .send(notification.body);
  };
}

function redeliver(site: Site): RequestHandler<{ id: string }> {
  return async (request, response) => {
    const { notification, attempts } = findOwn(site, response, request.params.id);
    const address = `${deliveryAddress(notification.id)}?after=${attempts.at(-1)?.attempt ?? 0}`;
    const { result } = site.once.run(`redeliver ${notification.id}`, await readForm(request), () => {
      if (!site.deliverer.redeliver(notification.id)) throw nothingHere('webhook delivery');
      return address;
    });
    seeOther(response, result);
  };
}

/** @throws ApiError for an address that somebody wrote by hand */
function positionOf(cursor: string): string {
  const found = fromCursor('deliveries', cursor);
  if (found === undefined) throw new ApiError(INVALID_CURSOR);
  return found;
}

/** One of another account counts as missing. @throws PageError */
function findOwn({ notifications }: Site, response: Response, id: string): NotificationRecord {
  const found = notifications.find(id);
  if (found?.notification.accountId === accountOf(response).id) return found;
  throw nothingHere('webhook delivery');
}
