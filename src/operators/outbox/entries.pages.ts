// How an entry of the outbox is shown, in its list and where something is done to it.

import { type Content, type Html, html } from '../../web/index.ts';
import type { Cells } from '../kernel/list/looks.pages.ts';
import { address, eventHref, replayHref } from '../kernel/view/links.ts';
import { state } from '../kernel/view/states.ts';
import { explained, idLink } from '../kernel/view/texts.ts';
import { timeOfDay } from '../kernel/view/times.ts';
import { type Entry, isDue, nameOfAhead, whyOf } from './contract.ts';

export const OUTBOX = '/console/outbox';

export const eventLink = ({ event_id: id }: Entry): Html =>
  html`<a class="id" href="${eventHref(id)}">${id}</a>`;

/** What it waits behind, with a link, or its last error. */
export function whyItWaits(entry: Entry): Content {
  const { waits_behind: ahead, source, job_id } = entry;
  if (!ahead) return explained(whyOf(entry));
  const where = address(OUTBOX, { source, job_id });
  return html`waits for ${idLink(where, nameOfAhead(entry))}, which is ${state(ahead.state)}`;
}

export const ENTRY_CELLS: Cells<'outbox'> = {
  state: ({ state: now, due_at: due, waits_behind: ahead }) =>
    html`${state(now)}${now === 'pending' && !ahead && html`<span class="dim">, due ${isDue({ due_at: due }) ? 'now' : timeOfDay(due)}</span>`}`,
  event_id: eventLink,
  last_error: whyItWaits,
  replay_id: ({ replay_id: id }) => id !== null && html`<a href="${replayHref(id)}">replay</a>`,
};
