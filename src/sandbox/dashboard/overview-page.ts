// The first page: the account, its tier and how much of its limits is used, its latest jobs. Limits count for each token.

import { type RequestHandler, Router } from 'express';
import { type Html, html, readForm, seeOther } from '../../web/index.ts';
import type { Account, Token } from '../accounts/accounts.ts';
import type { WindowUse } from '../accounts/limits.ts';
import { TIER_NAMES } from '../accounts/tiers.ts';
import { tokenState } from '../accounts/tokens.ts';
import { jobTable } from './job-table.ts';
import { show } from './layout.ts';
import { at } from './methods.ts';
import { PageError } from './page-error.ts';
import { CELL_MAX_LENGTH, code, foreign, form, notice, number, time, wait } from './shown.ts';
import { accountOf, DASHBOARD_PATH, type Site } from './site.ts';

const JOBS_SHOWN = 5;
/** The last used come first. */
const TOKENS_SHOWN = 10;

export function overviewPage(site: Site): Router {
  const router = Router({ caseSensitive: true, strict: true });
  at(router, '/', { get: read(site) });
  at(router, '/tier', { post: changeTier(site) });
  return router;
}

function read(site: Site): RequestHandler<{ id: string }> {
  return async ({ query }, response) => {
    const account = accountOf(response);
    const { jobs } = site.store.jobs.list({
      accountId: account.id,
      status: undefined,
      limit: JOBS_SHOWN,
      before: undefined,
    });
    const content = html`${query['done'] === 'tier' && notice('The tier is changed. Its limits begin anew.')}
${facts(account, site)}
<section><h2>Limits used</h2>
${await usedLimits(site, account)}
</section>
<section><h2>Latest jobs</h2>
${jobTable(jobs, 'No jobs so far.')}
<p class="actions"><a class="button main" href="${DASHBOARD_PATH}/jobs/new">New conversion</a>
${jobs.length > 0 && html`<a class="button" href="${DASHBOARD_PATH}/jobs">All jobs</a>`}</p>
</section>`;
    show(site, response, { title: 'Overview', section: '', content });
  };
}

function facts(account: Account, { tiers, engine }: Site): Html {
  const { requestsPerHour, burstPerMinute, formats } = tiers[account.tier];
  const hour =
    requestsPerHour === null
      ? 'any number of requests an hour'
      : `${number(requestsPerHour)} requests an hour`;
  return html`<dl class="facts">
<dt>Account</dt><dd><bdi>${foreign(account.name)}</bdi> ${code(account.id)}</dd>
<dt>Created</dt><dd>${time(account.createdAt)}</dd>
<dt>Tier</dt><dd>${form(
    '/tier',
    html`<select name="tier" aria-label="Tier">${TIER_NAMES.map(
      (name) => html`<option${name === account.tier && html` selected`}>${name}</option>`,
    )}</select> <button>Change</button>`,
    'actions',
  )}</dd>
<dt>Each token may send</dt><dd>${hour}, and ${number(burstPerMinute)} a minute</dd>
<dt>Formats</dt><dd>${formats === null ? 'all' : formats.join(', ')}</dd>
<dt>Engine</dt><dd>${engine.kind === 'ffmpeg' ? `ffmpeg ${engine.version}` : 'simulated: nothing is really converted'}</dd>
</dl>`;
}

async function usedLimits({ accounts, limits, now }: Site, account: Account): Promise<Html> {
  const valid = accounts.tokens(account.id).filter((token) => tokenState(token, now()) === 'valid');
  if (valid.length === 0) {
    return html`<p class="empty">The account has no valid token. <a href="${DASHBOARD_PATH}/tokens">Create one</a> to send
requests.</p>`;
  }
  const shown = valid
    .toSorted((one, other) => lastUse(other).localeCompare(lastUse(one)))
    .slice(0, TOKENS_SHOWN);
  const rows = await Promise.all(
    shown.map(async (token) => ({ token, uses: await limits.usesOf(token.id, account.tier) })),
  );
  return html`<div class="scroll"><table class="list"><caption>Requests in the current windows. A window begins with its first request${
    valid.length > shown.length && `; the ${TOKENS_SHOWN} last used of ${number(valid.length)} tokens`
  }.</caption>
<thead><tr><th>Token</th><th>This minute</th><th>This hour</th><th>Last used</th></tr></thead>
<tbody>${rows.map(
    ({
      token,
      uses: [minute, hour],
    }) => html`<tr><td data-head="Token" class="long"><bdi>${foreign(token.name, CELL_MAX_LENGTH)}</bdi></td>
<td data-head="This minute">${use(minute, token.name)}</td><td data-head="This hour">${use(hour, token.name)}</td>
<td data-head="Last used">${time(token.lastUsedAt, 'never')}</td></tr>`,
  )}</tbody></table></div>`;
}

function lastUse({ lastUsedAt }: Token): string {
  return lastUsedAt ?? '';
}

function use(window: WindowUse | undefined, name: string): Html {
  if (window === undefined) return html`<span class="dim">no limit</span>`;
  const { used, limit, msLeft, windowS } = window;
  const label = `${foreign(name, CELL_MAX_LENGTH)}: requests of ${windowS === 60 ? 'this minute' : 'this hour'}`;
  return html`<span class="use"><progress max="${limit}" value="${used}" aria-label="${label}"></progress>
<span>${number(used)} of ${number(limit)}${used > 0 && html` <span class="dim">for ${wait(msLeft)}</span>`}</span></span>`;
}

function changeTier(site: Site): RequestHandler<{ id: string }> {
  return async (request, response) => {
    const given = (await readForm(request)).get('tier');
    const tier = TIER_NAMES.find((name) => name === given);
    if (tier === undefined)
      throw new PageError(422, 'There is no such tier', `It is one of ${TIER_NAMES.join(', ')}.`);
    site.accounts.change(accountOf(response), { tier });
    seeOther(response, `${DASHBOARD_PATH}?done=tier`);
  };
}
