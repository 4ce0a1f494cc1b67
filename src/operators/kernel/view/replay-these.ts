// How a list of events, or of what became of them, offers their replay: boxes that tick rows, a button for the ticked ones, and
// whatever replays all that match.

import { type Content, type Html, html } from '../../../web/index.ts';
import type { Column } from './table.ts';

/** @param eventOf the id of a row's event */
export const chooseEvent = <Item>(eventOf: (item: Item) => string): Column<Item> => ({
  head: 'Choose',
  cell: (item) =>
    html`<input type="checkbox" name="event_ids" value="${eventOf(item)}" aria-label="Choose ${eventOf(item)}">`,
});

export const replayChosen = (table: Content, all: Content): Html =>
  html`<form method="post" action="/console/replays/choose"><input type="hidden" name="of" value="ticks">${table}
<p class="actions"><button>Replay selected …</button>${all}</p></form>`;

export const CHOOSE_A_FILTER: Content = html` <span class="hint">To replay all that match, choose a filter.</span>`;
