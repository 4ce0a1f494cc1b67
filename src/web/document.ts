// The frame of every page: what stands in its head, and how it is sent.

import type { Response } from 'express';
import { type Content, type Html, html } from './html.ts';

export type DocumentParts = {
  readonly title: string;
  readonly body: Content;
  readonly styles: readonly string[];
  /** Modules: they run when the page is there. */
  readonly scripts?: readonly string[];
  readonly icon: string;
  /** Where scripts do not run, the page is loaded again after so many seconds. */
  readonly refreshS?: number | undefined;
};

/** The whole page. */
export function renderDocument({ title, body, styles, scripts = [], icon, refreshS }: DocumentParts): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="${icon}" type="image/svg+xml">
${styles.map((href) => html`<link rel="stylesheet" href="${href}">\n`)}${scripts.map((src) => html`<script type="module" src="${src}"></script>\n`)}${refreshS !== undefined && html`<noscript><meta http-equiv="refresh" content="${refreshS}"></noscript>\n`}</head>
<body>
${body}
</body>
</html>
`;
}

export function sendPage(response: Response, page: Html, status = 200): void {
  response.status(status).type('html').send(String(page));
}

/** After a form, so that a reload does not send it again. `address`: our own. */
export function seeOther(response: Response, address: string): void {
  response.status(303).set('Location', address).end();
}
