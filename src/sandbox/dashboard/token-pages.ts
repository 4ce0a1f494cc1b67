// The account's tokens: create one, whose value is shown once, and revoke one.

import { type RequestHandler, type Response, Router } from 'express';
import { UsageError } from '../../base/errors.ts';
import { type Content, type Html, html, readForm, seeOther } from '../../web/index.ts';
import type { Token } from '../accounts/accounts.ts';
import { checkExpiry, checkName } from '../accounts/checks.ts';
import { ENVIRONMENTS, type Environment, SCOPES, type Scope, tokenState } from '../accounts/tokens.ts';
import { show } from './layout.ts';
import { at } from './methods.ts';
import { nothingHere } from './page-error.ts';
import {
  CELL_MAX_LENGTH,
  code,
  faultList,
  foreign,
  form,
  notice,
  number,
  time,
  tokenStateShown,
} from './shown.ts';
import { accountOf, DASHBOARD_PATH, type Site } from './site.ts';

const TOKENS = `${DASHBOARD_PATH}/tokens`;
const PAGE_SIZE = 25;

type Values = {
  readonly name: string;
  readonly environment: Environment;
  readonly scopes: readonly Scope[];
  readonly expires: string;
};
const EMPTY: Values = { name: '', environment: 'live', scopes: SCOPES, expires: '' };

export function tokenPages(site: Site): Router {
  const router = Router({ caseSensitive: true, strict: true });
  at(router, '/tokens', { get: read(site), post: create(site) });
  at(router, '/tokens/:id/revoke', { post: revoke(site) });
  return router;
}

function read(site: Site): RequestHandler<{ id: string }> {
  return ({ query }, response) => {
    const top =
      query['done'] === 'revoked' && notice('The token is revoked. Requests with it get 401 from now on.');
    page(site, response, { top, from: Math.max(0, Math.floor(Number(query['from']) || 0)) });
  };
}

function create(site: Site): RequestHandler<{ id: string }> {
  return async (request, response) => {
    const given = await readForm(request);
    const values: Values = {
      name: (given.get('name') ?? '').trim(),
      environment: ENVIRONMENTS.find((each) => each === given.get('environment')) ?? 'live',
      scopes: SCOPES.filter((scope) => given.getAll('scopes').includes(scope)),
      expires: (given.get('expires') ?? '').trim(),
    };
    const account = accountOf(response);
    let value = '';
    try {
      const { result: id, isRepeated } = site.once.run(`token ${account.id}`, given, () => {
        const made = site.accounts.createToken({ account, ...check(values, site.now()) });
        value = made.value;
        return made.token.id;
      });
      page(site, response, { top: isRepeated ? shownBefore(id) : shownOnce(value) });
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      page(site, response, { top: faultList([error.message]), values, status: 422 });
    }
  };
}

/** @throws UsageError */
function check({ name, environment, scopes, expires }: Values, nowMs: number) {
  if (scopes.length === 0) throw new UsageError('A token needs one scope at least');
  return {
    name: checkName('The name', name),
    environment,
    scopes,
    expiresAt: expires === '' ? null : checkExpiry('The expiry', expires, nowMs),
  };
}

function shownOnce(value: string): Html {
  return html`<div class="notice good"><p><strong>The token is created.</strong> This is its value. It is shown only this once.</p>
<p class="actions"><code class="value" id="value">${value}</code> <button type="button" data-copy="value" hidden>Copy</button></p></div>`;
}

function shownBefore(id: string): Html {
  return html`<div class="notice warn"><p>This form was sent before, and created ${code(id)}. Nothing more was created. Its value was shown
once: if you did not see it, revoke the token and create another.</p></div>`;
}

function revoke({ accounts }: Site): RequestHandler<{ id: string }> {
  return async (request, response) => {
    const { id } = request.params;
    await readForm(request);
    if (!accounts.tokens(accountOf(response).id).some((token) => token.id === id)) throw nothingHere('token');
    accounts.revokeToken(id);
    seeOther(response, `${TOKENS}?done=revoked`);
  };
}

type Shown = {
  readonly top: Content;
  readonly values?: Values;
  readonly status?: number;
  readonly from?: number;
};

function page(site: Site, response: Response, { top, values = EMPTY, status = 200, from = 0 }: Shown): void {
  const found = site.accounts.tokens(accountOf(response).id).toReversed();
  const shown = found.slice(from, from + PAGE_SIZE);
  const content = html`${top}
${table(shown, site.now())}
<p class="actions">${from > 0 && html`<a class="button" href="${TOKENS}">Newest</a>`}
${found.length > from + PAGE_SIZE && html`<a class="button" href="${TOKENS}?from=${from + PAGE_SIZE}">Older (${number(found.length - from - PAGE_SIZE)} more)</a>`}</p>
<section><h2>New token</h2>
${createForm(values)}
</section>`;
  show(site, response, { title: 'Tokens', section: '/tokens', content, status });
}

function table(tokens: readonly Token[], nowMs: number): Html {
  if (tokens.length === 0)
    return html`<p class="empty">No tokens. Requests to the API need one: create it below.</p>`;
  return html`<div class="scroll"><table class="list">
<thead><tr><th>Name</th><th>State</th><th>Environment</th><th>Scopes</th><th>Expires</th><th>Last used</th><th>Id</th><th><span class="unseen">Action</span></th></tr></thead>
<tbody>${tokens.map((token) => row(token, nowMs))}</tbody></table></div>`;
}

function row(token: Token, nowMs: number): Html {
  const state = tokenState(token, nowMs);
  return html`<tr><td data-head="Name" class="long"><bdi>${foreign(token.name, CELL_MAX_LENGTH)}</bdi></td>
<td data-head="State">${tokenStateShown(state)}</td>
<td data-head="Environment">${token.environment}</td>
<td data-head="Scopes">${token.scopes.length === SCOPES.length ? 'all' : token.scopes.join(', ')}</td>
<td data-head="Expires" class="brief">${time(token.expiresAt, 'never')}</td>
<td data-head="Last used" class="brief">${time(token.lastUsedAt, 'never')}</td>
<td data-head="Id">${code(token.id)}</td>
<td>${state === 'valid' && revokeForm(token)}</td></tr>`;
}

/** Asks before it revokes, also where scripts do not run. */
function revokeForm({ id, name }: Token): Html {
  return html`<details class="confirm"><summary>Revoke<span class="unseen"> ${foreign(name, CELL_MAX_LENGTH)}</span></summary>
${form(
  `/tokens/${encodeURIComponent(id)}/revoke`,
  html`<p>Programs with this token get 401 at once. This cannot be undone.</p><button class="danger">Revoke this token</button>`,
)}</details>`;
}

function createForm({ name, environment, scopes, expires }: Values): Html {
  return form(
    '/tokens',
    html`<label>Name: what it is for
<input name="name" required maxlength="100" value="${name}" autocomplete="off"></label>
<fieldset class="choices"><legend>Environment</legend>
${ENVIRONMENTS.map((each) => html`<label class="tick"><input type="radio" name="environment" value="${each}"${each === environment && html` checked`}> ${each}</label>`)}
</fieldset>
<fieldset class="choices"><legend>Scopes</legend>
${SCOPES.map((scope) => html`<label class="tick"><input type="checkbox" name="scopes" value="${scope}"${scopes.includes(scope) && html` checked`}> ${scope}</label>`)}
</fieldset>
<label>Expires at the beginning of this day, in UTC (empty: never)
<input name="expires" type="date" value="${expires}"></label>
<button class="main">Create the token</button>`,
  );
}
