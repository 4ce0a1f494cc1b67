// What a conflicting delivery says otherwise than the event.

import type { z } from 'zod';
import { type Content, html } from '../../web/index.ts';
import { deliveryHref, eventHref } from '../kernel/view/links.ts';
import { renderTable } from '../kernel/view/table.ts';
import { id, idLink, seen } from '../kernel/view/texts.ts';
import { utc } from '../kernel/view/times.ts';
import type { Difference, FieldDifference } from './difference.contract.ts';

export function renderDifference({
  event,
  first_delivery: first,
  differences,
  has_more: hasMore,
}: z.output<typeof Difference>): Content {
  return html`<p>The event ${idLink(eventHref(event.id), event.id)} was created by <a href="${deliveryHref(first.id)}">the delivery of ${utc(first.received_at)}</a>.</p>
${renderTable({
  caption: 'What differs',
  columns: [
    {
      head: 'Field',
      cell: ({ path, cut }) => value(path === '' ? 'the whole body' : path, cut.includes('path')),
      form: 'long',
    },
    {
      head: 'In the event',
      cell: ({ event: text, cut }) => value(text, cut.includes('event')),
      form: 'long',
    },
    {
      head: 'In this delivery',
      cell: ({ delivery: text, cut }) => value(text, cut.includes('delivery')),
      form: 'long',
    },
  ],
  items: differences satisfies readonly FieldDifference[],
  empty: 'The two bodies have the same content.',
})}
${hasMore && html`<p class="hint">These are the first ${differences.length}. There are more.</p>`}`;
}

const value = (text: string | null, isCut: boolean): Content =>
  text === null
    ? html`<span class="dim">not there</span>`
    : html`${id(seen(text))}${isCut && html` <span class="dim">(cut)</span>`}`;
