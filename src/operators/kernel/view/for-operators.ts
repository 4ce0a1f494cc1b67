// What is said to those who see what waits and may not decide on it: who may.

import { type Html, html } from '../../../web/index.ts';

/** @param what `Replaying and parking are` */
export const forOperators = (what: string): Html =>
  html`<p class="hint">${what} for the role operator and above.</p>`;
