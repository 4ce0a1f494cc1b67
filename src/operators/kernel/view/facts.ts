// Names and values of one thing.

import { type Content, html } from '../../../web/index.ts';
import { isPresent } from './present.ts';

/** Values that are not there are left out with their names. */
export function renderFacts(facts: readonly (readonly [name: string, value: Content])[]): Content {
  const there = facts.filter(([, value]) => isPresent(value));
  return html`<dl class="facts">${there.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>\n`)}</dl>`;
}
