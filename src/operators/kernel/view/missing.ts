// The page of something that there is not.

import { type Content, html } from '../../../web/index.ts';
import type { View } from '../console/page.ts';

/** @param why it may be gone, and where else to look */
export const missing = (what: string, why: Content): View => ({
  title: `There is no such ${what}`,
  status: 404,
  body: html`<p>${why}</p>`,
});
