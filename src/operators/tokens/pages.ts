// Tokens of the operators' API: list, make and revoke them. A new token's value is on the page that answers its form, and on no
// other: a repeated form gets the token without it.

import type { z } from 'zod';
import { parseExpiry } from '../../base/time/moments.ts';
import { type Content, html } from '../../web/index.ts';
import type { Calls } from '../kernel/console/calls.ts';
import { inWords } from '../kernel/console/fault-words.ts';
import { get, type Page, post, type View, type Visit } from '../kernel/console/page.ts';
import { sameAs } from '../kernel/console/same-as.ts';
import { ApiError } from '../kernel/operation/operation.ts';
import { keyField, keyIn, textIn } from '../kernel/view/act.ts';
import { renderFacts } from '../kernel/view/facts.ts';
import { address } from '../kernel/view/links.ts';
import { state } from '../kernel/view/states.ts';
import { renderTable } from '../kernel/view/table.ts';
import { day, utc } from '../kernel/view/times.ts';
import { NewToken, ROLES, TOKEN_ROLES, Token, TokenPage } from './contract.ts';

type Shown = z.output<typeof Token>;

const PATH = '/console/tokens';
const revokeHref = (id: string) => `${PATH}/${encodeURIComponent(id)}/revoke`;

const readTokens = async (calls: Calls) => (await calls.call('listTokens', TokenPage)).items;

const stateOf = ({ revoked_at: revoked, expires_at: expires }: Shown): string => {
  if (revoked !== null) return 'revoked';
  return expires !== null && Date.parse(expires) <= Date.now() ? 'expired' : 'valid';
};

const tokens: Page = get('/tokens', ['listTokens'], async ({ calls, caller, origin }) => ({
  title: 'Tokens',
  beside: html`<a class="button main" href="${PATH}/new">New token</a>`,
  body: renderTable<Shown>({
    caption: 'Tokens, the newest first',
    columns: [
      {
        head: 'Name',
        cell: (token) =>
          html`${token.name}${token.id === caller.tokenId && html` <span class="dim">(yours)</span>`}`,
        form: 'name',
      },
      { head: 'Role', cell: ({ role }) => role, form: 'brief' },
      { head: 'Sources', cell: ({ sources }) => sources?.join(', ') ?? 'all', form: 'text' },
      { head: 'State', cell: (token) => state(stateOf(token)), form: 'brief' },
      { head: 'Last used (UTC)', cell: (token) => utc(token.last_used_at) ?? 'never', form: 'brief' },
      { head: 'Expires (UTC)', cell: (token) => utc(token.expires_at) ?? 'never', form: 'brief' },
      { head: 'Created (UTC)', cell: (token) => day(token.created_at), form: 'brief' },
      { head: 'Created by', cell: (token) => token.created_by, form: 'name' },
      {
        head: 'Id',
        cell: ({ id }) =>
          html`<a class="id" href="${address('/console/operator-log', { token_id: id })}">${id}</a>`,
        form: 'long',
      },
      {
        head: 'Actions',
        cell: (token) =>
          token.revoked_at === null && html`<a class="drastic" href="${revokeHref(token.id)}">Revoke</a>`,
        form: 'act',
      },
    ],
    items: await readTokens(calls),
    empty: 'There are no tokens.',
  }),
  sameAs: sameAs(origin, { command: ['tokens', 'list'], path: '/tokens' }),
}));

const newToken: Page = get('/tokens/new', ['createToken'], async (visit) =>
  formPage(visit, new URLSearchParams()),
);

const createToken: Page = post('/tokens/new', ['createToken'], async (visit) => {
  const key = keyIn(visit.form);
  try {
    const made = await visit.calls.call('createToken', NewToken, { key, body: orderIn(visit.form) });
    return madePage(made);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 400) throw error;
    return { ...formPage(visit, visit.form, inWords(error)), status: error.status };
  }
});

/** The operation checks it. @throws ApiError 400 */
function orderIn(form: URLSearchParams) {
  const sources = form.getAll('sources').filter((name) => name !== '');
  const expires = textIn(form, 'expires_at');
  const moment = expires === undefined ? undefined : parseExpiry(expires, Date.now());
  if (expires !== undefined && moment === undefined) {
    throw new ApiError(
      400,
      'invalid_request',
      'expires_at: write in how long, a day or a time: 90d, 2027-01-31, 2027-01-31T12:00:00Z',
    );
  }
  return {
    name: form.get('name')?.trim() ?? '',
    role: form.get('role') ?? '',
    ...(sources.length > 0 && { sources }),
    ...(moment !== undefined && { expires_at: moment }),
  };
}

const MAY: Readonly<Record<(typeof TOKEN_ROLES)[number], string>> = {
  scraper: 'reads the metrics and nothing else',
  viewer: 'reads everything but bodies, exports and the operator log',
  auditor: 'also reads those',
  operator: 'also replays, releases, retries, discards and parks',
  admin: 'also creates and revokes tokens',
};

function formPage({ sources }: Visit, form: URLSearchParams, fault?: string): View {
  const role = form.get('role') ?? ROLES[0];
  const chosen = form.getAll('sources');
  return {
    title: 'New token',
    body: html`${fault !== undefined && html`<div class="notice bad" role="alert"><p>${fault}</p></div>`}
<form class="form" method="post" action="${PATH}/new">${keyField()}
<label>Name: who or what uses it <input name="name" required maxlength="100" value="${form.get('name') ?? ''}" autocomplete="off"></label>
<fieldset><legend>Role</legend>${TOKEN_ROLES.map((each) => html`<p><label class="tick"><input type="radio" name="role" value="${each}"${each === role && html` checked`}> <span>${each}: ${MAY[each]}</span></label></p>`)}</fieldset>
${
  sources.length > 0 &&
  html`<fieldset><legend>Only these sources</legend>${sources.map((source) => html`<p><label class="tick"><input type="checkbox" name="sources" value="${source}"${chosen.includes(source) && html` checked`}> ${source}</label></p>`)}<p class="hint">None selected: all sources.</p></fieldset>`
}
<label>Expires (UTC) <input name="expires_at" value="${form.get('expires_at') ?? ''}" placeholder="90d, 2027-01-31; empty: never" autocomplete="off"></label>
<p class="actions"><button class="main">Create token</button> <a href="${PATH}">Back to the list</a></p>
</form>`,
  };
}

function madePage({ value, ...token }: z.output<typeof NewToken>): View {
  return {
    title: 'Token created',
    body: html`${
      value === undefined
        ? html`<div class="notice warn"><p>Its value was shown once, and is stored nowhere. If nobody copied it, <a href="${revokeHref(token.id)}">revoke this token</a> and create another.</p></div>`
        : html`<div class="notice good"><p>Copy the value now: it is not shown again.</p>
<p><code class="value" data-copy>${value}</code></p></div>`
    }
${factsOf(token)}
<p><a href="${PATH}">All tokens</a></p>`,
  };
}

const factsOf = (token: Shown): Content =>
  renderFacts([
    ['Name', token.name],
    ['Role', token.role],
    ['Sources', token.sources?.join(', ') ?? 'all'],
    ['State', state(stateOf(token))],
    ['Last used', token.last_used_at && html`${utc(token.last_used_at)} UTC`],
    ['Expires', token.expires_at && html`${utc(token.expires_at)} UTC`],
    ['Id', html`<span class="id">${token.id}</span>`],
  ]);

const confirmRevoke: Page = get(
  '/tokens/:id/revoke',
  ['revokeToken', 'listTokens'],
  async ({ calls, caller, params, origin }) => {
    const found = (await readTokens(calls)).find(({ id }) => id === params['id']);
    if (found === undefined) throw new ApiError(404, 'not_found', 'there is no such token');
    const { id } = found;
    const isOwn = id === caller.tokenId;
    return {
      title: 'Revoke this token?',
      body: html`${factsOf(found)}
${isOwn && html`<div class="notice warn"><p>You signed in with it: your session ends, too.</p></div>`}
<p>Its next request is refused, its sessions of the console end, its listeners within seconds, and its running exports within a minute. A revoked token stays revoked.</p>
<form method="post" action="${revokeHref(id)}">${keyField()}<p class="actions"><button class="danger">Revoke the token</button> <a href="${PATH}">Back to the list</a></p></form>`,
      sameAs: sameAs(origin, { command: ['tokens', 'revoke', id], path: `/tokens/${id}/revoke`, body: {} }),
    };
  },
);

const revokeToken: Page = post(
  '/tokens/:id/revoke',
  ['revokeToken'],
  async ({ calls, caller, params, form }) => {
    const found = await calls.call('revokeToken', Token, { params: { id: params['id'] }, key: keyIn(form) });
    return {
      title: 'Token revoked',
      body: html`${factsOf(found)}<p>${found.id === caller.tokenId ? html`Your session has ended with it. <a href="/console/sign-in">Sign in again</a>` : html`<a href="${PATH}">All tokens</a>`}</p>`,
    };
  },
);

export const tokenPages: readonly Page[] = [tokens, newToken, createToken, confirmRevoke, revokeToken];
