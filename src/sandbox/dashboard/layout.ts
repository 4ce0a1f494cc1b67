// The frame of the dashboard's pages.

import type { Response } from 'express';
import { type Content, type Html, html, renderDocument, sendPage } from '../../web/index.ts';
import { foreign } from './shown.ts';
import { accountOf, DASHBOARD_PATH, type Site } from './site.ts';

const NAV = [
  ['', 'Overview'],
  ['/jobs', 'Jobs'],
  ['/deliveries', 'Deliveries'],
  ['/webhooks', 'Webhooks'],
  ['/tokens', 'Tokens'],
] as const;

export type Section = (typeof NAV)[number][0];

type Page = {
  readonly title: string;
  readonly content: Content;
  readonly status?: number;
  /** See DocumentParts. */
  readonly refreshS?: number | undefined;
};

/** A page for somebody who is signed in. */
export function show(site: Site, response: Response, page: Page & { readonly section?: Section }): void {
  const account = accountOf(response);
  send(
    site,
    response,
    page,
    html`<nav aria-label="Dashboard">${NAV.map(([path, name]) => link(path, name, page.section))}</nav>
<form class="who" method="post" action="${DASHBOARD_PATH}/sign-out">
<span class="dim">Account <bdi>${foreign(account.name)}</bdi></span> <button class="plain">Sign out</button>
</form>`,
  );
}

/** A page for anybody. */
export function showOutside(site: Site, response: Response, page: Page): void {
  send(site, response, page, false);
}

function send({ assets }: Pick<Site, 'assets'>, response: Response, page: Page, nav: Content): void {
  const body = html`<a class="skip" href="#main">Skip to the content</a>
<header class="site">
<a class="brand" href="${DASHBOARD_PATH}">Conversion sandbox</a>
${nav}
</header>
<main id="main" tabindex="-1">
<h1>${page.title}</h1>
${page.content}
</main>`;
  const document = renderDocument({
    title: `${page.title} · Conversion sandbox`,
    body,
    styles: ['base.css', 'dashboard.css'].map(assets.href),
    scripts: [assets.href('dashboard.js')],
    icon: assets.href('icon.svg'),
    refreshS: page.refreshS,
  });
  sendPage(response, document, page.status);
}

function link(path: Section, name: string, section: Section | undefined): Html {
  return html`<a href="${DASHBOARD_PATH}${path}"${path === section && html` aria-current="page"`}>${name}</a>`;
}
