// How an entry of the outbox is shown, in its list and where something is done to it.

import { type Html, html } from '../../web/index.ts';
import type { Cells } from '../kernel/list/looks.pages.ts';
import { eventHref, replayHref } from '../kernel/view/links.ts';
import { state } from '../kernel/view/states.ts';
import { clipped } from '../kernel/view/table.ts';
import { explained } from '../kernel/view/texts.ts';
import { timeOfDay } from '../kernel/view/times.ts';
import type { Entry } from './contract.ts';

export const OUTBOX = '/console/outbox';

export const eventLink = ({ event_id: id }: Entry): Html =>
  html`<a class="id" href="${eventHref(id)}">${id}</a>`;

export const ENTRY_CELLS: Cells<'outbox'> = {
  state: ({ state: now, due_at: due }) =>
    html`${state(now)}${now === 'pending' && html`<span class="dim">, due ${timeOfDay(due)}</span>`}`,
  event_id: eventLink,
  last_error: (entry) => clipped(explained(entry.last_error)),
  replay_id: ({ replay_id: id }) => id !== null && html`<a href="${replayHref(id)}">replay</a>`,
};
