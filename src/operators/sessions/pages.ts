// Open sessions of the console: who is signed in, and how to end that.

import type { z } from 'zod';
import { html } from '../../web/index.ts';
import type { Calls } from '../kernel/console/calls.ts';
import { get, type Page, post } from '../kernel/console/page.ts';
import { sameAs } from '../kernel/console/same-as.ts';
import { ApiError } from '../kernel/operation/operation.ts';
import { keyField, keyIn } from '../kernel/view/act.ts';
import { renderFacts } from '../kernel/view/facts.ts';
import { address } from '../kernel/view/links.ts';
import { renderTable } from '../kernel/view/table.ts';
import { utc } from '../kernel/view/times.ts';
import { EndedSession, type Session, SessionPage } from './contract.ts';

type Shown = z.output<typeof Session>;

const PATH = '/console/sessions';
const endHref = (id: string) => `${PATH}/${encodeURIComponent(id)}/end`;

const readSessions = async (calls: Calls) => (await calls.call('listSessions', SessionPage)).items;

const sessions: Page = get('/sessions', ['listSessions'], async ({ calls, caller, origin }) => ({
  title: 'Sessions',
  body: html`<p>Browsers that are signed in. A session has the rights of its token, and ends with it.</p>
${renderTable<Shown>({
  caption: 'Open sessions, the newest first',
  columns: [
    {
      head: 'Token',
      cell: (session) =>
        html`${session.token_name}${session.id === caller.sessionId && html` <span class="dim">(this one)</span>`}`,
      form: 'name',
    },
    { head: 'From', cell: (session) => session.remote_address },
    { head: 'Started (UTC)', cell: (session) => utc(session.created_at), form: 'brief' },
    { head: 'Last used (UTC)', cell: (session) => utc(session.last_used_at), form: 'brief' },
    { head: 'Ends by (UTC)', cell: (session) => utc(session.expires_at), form: 'brief' },
    {
      head: 'Id',
      cell: ({ id }) =>
        html`<a class="id" href="${address('/console/operator-log', { subject: id })}">${id}</a>`,
      form: 'brief',
    },
    {
      head: 'Actions',
      cell: ({ id }) => html`<a class="drastic" href="${endHref(id)}">End</a>`,
      form: 'act',
    },
  ],
  items: await readSessions(calls),
  empty: 'Nobody is signed in.',
})}`,
  sameAs: sameAs(origin, { command: ['sessions', 'list'], path: '/sessions' }),
}));

const confirmEnd: Page = get(
  '/sessions/:id/end',
  ['endSession', 'listSessions'],
  async ({ calls, caller, params, origin }) => {
    const found = (await readSessions(calls)).find(({ id }) => id === params['id']);
    if (found === undefined)
      throw new ApiError(404, 'not_found', 'there is no open session of this id: it may have ended');
    const { id } = found;
    return {
      title: 'End this session?',
      body: html`${renderFacts([
        ['Token', found.token_name],
        ['From', found.remote_address],
        ['Started', html`${utc(found.created_at)} UTC`],
        ['Last used', html`${utc(found.last_used_at)} UTC`],
      ])}
${id === caller.sessionId && html`<div class="notice warn"><p>This is your own session: you will have to sign in again.</p></div>`}
<p>Its next request leads to the sign-in page. The token stays valid: to keep somebody out, revoke the token.</p>
<form method="post" action="${endHref(id)}">${keyField()}<p class="actions"><button class="danger">End the session</button> <a href="${PATH}">Back to the list</a></p></form>`,
      sameAs: sameAs(origin, { command: ['sessions', 'end', id], path: `/sessions/${id}/end`, body: {} }),
    };
  },
);

const endSession: Page = post(
  '/sessions/:id/end',
  ['endSession'],
  async ({ calls, caller, params, form }) => {
    const { id } = await calls.call('endSession', EndedSession, {
      params: { id: params['id'] },
      key: keyIn(form),
    });
    return {
      title: 'Session ended',
      body: html`<p>${id === caller.sessionId ? html`<a href="/console/sign-in">Sign in again</a>` : html`<a href="${PATH}">All sessions</a>`}</p>`,
    };
  },
);

export const sessionPages: readonly Page[] = [sessions, confirmEnd, endSession];
