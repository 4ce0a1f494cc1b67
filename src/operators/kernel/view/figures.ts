// The numbers that lead a page: large, in a row, each with what it counts, and with its list behind it.

import { type Content, type Html, html } from '../../../web/index.ts';

export type Figure = {
  /** Nothing to show: `0`. */
  readonly value: string;
  readonly name: string;
  /** The list of what it counts. */
  readonly href?: string | undefined;
  /** It waits for somebody: said by its look. */
  readonly isDue?: boolean;
  /** Small print, such as since when. */
  readonly more?: Content;
};

export function renderFigures(figures: readonly Figure[]): Html {
  return html`<ul class="figures">${figures.map(({ value, name, href, isDue, more }) => {
    const both = html`<b>${value}</b> <span>${name}</span>`;
    return html`<li${isDue && html` class="due"`}>${href === undefined ? both : html`<a href="${href}">${both}</a>`}${more && html`<span class="hint">${more}</span>`}</li>\n`;
  })}</ul>`;
}
