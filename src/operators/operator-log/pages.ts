// The operator log: who read and changed what.

import type { z } from 'zod';
import { type Content, html } from '../../web/index.ts';
import { listPage } from '../kernel/list/list.pages.ts';
import { address, deliveryHref, eventHref, replayHref } from '../kernel/view/links.ts';
import type { LogLine } from './contract.ts';

type Line = z.output<typeof LogLine>;

export const operatorLog = listPage({
  name: 'operator-log',
  title: 'Operator log',
  first: ['action', 'actor', 'subject', 'from', 'to'],
  cells: { subject: (line) => subjectOf(line), detail: { cell: (line) => detailsOf(line), form: 'wide' } },
  empty: 'Each change by an operator, and each body that one reads, leaves a line here.',
});

/** By the first word of the action. The subject of a read body is the delivery's id. */
const PLACES: Readonly<Record<string, (subject: string) => string>> = {
  body: deliveryHref,
  quarantine: deliveryHref,
  replay: replayHref,
  outbox: eventHref,
  token: (id) => address('/console/operator-log', { subject: id }),
  session: (id) => address('/console/operator-log', { subject: id }),
};

function subjectOf({ action, subject }: Line): Content {
  if (subject === null) return undefined;
  const [noun = ''] = action.split('.');
  const place = Object.hasOwn(PLACES, noun) ? PLACES[noun] : undefined;
  return place === undefined
    ? html`<span class="id" title="${subject}">${subject}</span>`
    : html`<a class="id" href="${place(subject)}" title="${subject}">${subject}</a>`;
}

/** Without what goes without saying: that a number is exact, and the subject once more. */
const detailsOf = ({ detail, subject }: Line): Content =>
  Object.entries(detail ?? {})
    .filter(
      ([name, value]) =>
        value !== null && value !== subject && !(name === 'matched_exactly' && value === true),
    )
    .map(
      ([name, value], index) =>
        html`${index > 0 && ', '}<span class="dim">${name.replaceAll('_', ' ')}</span> ${textOf(value)}`,
    );

/** Of an object its names and values: `source team-a, kind failed`. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return value.map(textOf).join(' ');
  return `(${Object.entries(value)
    .map(([name, each]) => `${name} ${textOf(each)}`)
    .join(', ')})`;
}
