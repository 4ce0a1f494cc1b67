// How an entry of the outbox is shown, in its list and where something is done to it.

import type { Entry } from '../../../contract/outbox.ts';
import { type Html, html } from '../../../../web/index.ts';
import { eventHref } from '../../view/links.ts';
import { exact } from '../../view/numbers.ts';
import { state } from '../../view/states.ts';
import { clipped, type Column } from '../../view/table.ts';
import { explained } from '../../view/texts.ts';
import { timeOfDay, utc } from '../../view/times.ts';

export const OUTBOX = '/console/outbox';

export const eventLink = ({ event_id: id }: Entry): Html =>
  html`<a class="id" href="${eventHref(id)}">${id}</a>`;

export const ENTRY_COLUMNS: readonly Column<Entry>[] = [
  { head: 'Event', cell: eventLink, form: 'clip' },
  {
    head: 'State',
    cell: (entry) =>
      html`${state(entry.state)}${entry.state === 'pending' && html`<span class="dim">, due ${timeOfDay(entry.due_at)}</span>`}`,
    form: 'brief',
  },
  { head: 'Attempts', cell: ({ attempts }) => exact(attempts), form: 'number' },
  { head: 'Recorded (UTC)', cell: (entry) => utc(entry.recorded_at), form: 'brief' },
  { head: 'Last error', cell: (entry) => clipped(explained(entry.last_error)), form: 'clip' },
];
