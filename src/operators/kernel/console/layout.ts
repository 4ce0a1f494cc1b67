// The frame of every page: the bar with the search box, the list of pages, and, below what a page shows, how to ask for the same
// elsewhere. Somebody who is not signed in gets the frame without them.

import type { Response } from 'express';
import { type Assets, type Content, type Html, html, renderDocument, sendPage } from '../../../web/index.ts';
import type { Asker } from '../operation/perform.ts';
import { sectionAbout } from '../view/documents.ts';
import type { View } from './page.ts';
import { renderSameAs } from './same-as.ts';

export type ShowView = (response: Response, view: View) => void;

type Entry = { readonly href: string; readonly name: string; readonly needs: string };

/** In three groups: is all well, what happened, who may. */
const NAVIGATION: readonly (readonly Entry[])[] = [
  [
    { href: '/console', name: 'Overview', needs: 'getStats' },
    { href: '/console/incidents', name: 'Incidents', needs: 'listIncidents' },
    { href: '/console/live', name: 'Live', needs: 'listen' },
    { href: '/console/outbox', name: 'Outbox', needs: 'listOutbox' },
    { href: '/console/quarantine', name: 'Quarantine', needs: 'listQuarantine' },
    { href: '/console/replays', name: 'Replays', needs: 'listReplays' },
  ],
  [
    { href: '/console/jobs', name: 'Jobs', needs: 'listJobs' },
    { href: '/console/deliveries', name: 'Deliveries', needs: 'listDeliveries' },
    { href: '/console/events', name: 'Events', needs: 'listEvents' },
    { href: '/console/publications', name: 'Publications', needs: 'listPublications' },
    { href: '/console/sources', name: 'Sources', needs: 'listSources' },
    { href: '/console/destinations', name: 'Destinations', needs: 'listDestinations' },
  ],
  [
    { href: '/console/tokens', name: 'Tokens', needs: 'listTokens' },
    { href: '/console/sessions', name: 'Sessions', needs: 'listSessions' },
    { href: '/console/operator-log', name: 'Operator log', needs: 'listOperatorLog' },
  ],
];

export type Layout = {
  /** For somebody who is not signed in. */
  readonly showToStranger: ShowView;
  /** @param path the page's own, to mark it in the navigation */
  readonly show: (
    response: Response,
    view: View,
    frame: { caller: Asker; path: string; search?: string; may: (operation: string) => boolean },
  ) => void;
};

export function createLayout({ assets }: { assets: Assets }): Layout {
  const send = (response: Response, { title, status }: View, body: Content) =>
    sendPage(
      response,
      renderDocument({
        title: `${title} – Tallyhook`,
        body,
        styles: [assets.href('base.css'), assets.href('console.css')],
        scripts: [assets.href('console.js'), assets.href('preview.js')],
        icon: assets.href('icon.svg'),
      }),
      status,
    );
  return {
    showToStranger: (response, view) =>
      send(
        response,
        view,
        html`<header class="bar"><a class="brand" href="/console">Tallyhook</a></header>
<main id="main" class="alone">${renderView(view)}</main>`,
      ),
    show: (response, view, { caller, path, search = '', may }) =>
      send(
        response,
        view,
        html`<a class="skip" href="#main">Skip to the content</a>
<header class="bar">
<a class="brand" href="/console">Tallyhook</a>
<search><form action="/console/search" class="searchbox">
<label class="unseen" for="search">Search</label>
<input id="search" name="q" type="search" value="${search}" placeholder="Id, error code or source" maxlength="256" autocomplete="off" spellcheck="false" data-key="/" required>
<button>Search</button>
</form></search>
<a href="${sectionAbout(path)}" title="What the documents say about this page">Docs</a>
<form method="post" action="/console/sign-out" class="who"><span class="caller" title="${caller.name}: ${caller.role}${caller.sources === null ? '' : `, sources: ${caller.sources.join(', ')}`}">${caller.name}</span> <span class="dim">${caller.role}</span> <button class="plain">Sign out</button></form>
</header>
<div class="page">
${navigation(path, may)}
<main id="main" tabindex="-1"${view.refreshS === undefined ? '' : html` data-refresh="${view.refreshS}"`}>${renderView(view)}${renderSameAs(view.sameAs)}</main>
</div>`,
      ),
  };
}

function renderView({ title, heading, beside, body }: View): Html {
  const h1 = html`<h1>${heading ?? title}</h1>`;
  return html`${beside ? html`<div class="spread heading">${h1}${beside}</div>` : h1}\n${body}`;
}

/** `/console/job` shows one of `/console/jobs`. */
function currentOf({ href }: Entry, path: string): 'page' | 'true' | undefined {
  if (path === href) return 'page';
  return href !== '/console' && (path.startsWith(`${href}/`) || `${path}s` === href) ? 'true' : undefined;
}

function navigation(path: string, may: (operation: string) => boolean): Html {
  const groups = NAVIGATION.map((group) => group.filter(({ needs }) => may(needs))).filter(
    (group) => group.length > 0,
  );
  const item = (entry: Entry) => {
    const current = currentOf(entry, path);
    return html`<li><a href="${entry.href}"${current && html` aria-current="${current}"`}>${entry.name}</a></li>\n`;
  };
  const present = groups.flat().find((entry) => currentOf(entry, path) !== undefined);
  // Folded where the window is narrow (console.css). The fold names the present page, which is all that is seen then.
  return html`<nav aria-label="Pages"><details class="fold menu"><summary>Menu${present && html` <b>${present.name}</b>`}</summary>
${groups.map((group) => html`<ul>\n${group.map(item)}</ul>`)}</details></nav>`;
}
