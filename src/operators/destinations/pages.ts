// Where events go: the queues that are bound to the exchange, for which events, how full they are, and what is wrong with them.

import { type Content, html } from '../../web/index.ts';
import { get } from '../kernel/console/page.ts';
import { sameAs } from '../kernel/console/same-as.ts';
import { address } from '../kernel/view/links.ts';
import { exact } from '../kernel/view/numbers.ts';
import { type Column, renderTable } from '../kernel/view/table.ts';
import { capitalized, seen } from '../kernel/view/texts.ts';
import { utc } from '../kernel/view/times.ts';
import {
  depthText,
  type Destination,
  DestinationList,
  type DestinationWarning,
  MORE_QUEUES,
  NOTHING_BOUND,
  receivedText,
} from './contract.ts';

export const destinations = get('/destinations', ['listDestinations'], async ({ calls, origin }) => {
  const found = await calls.call('listDestinations', DestinationList);
  return {
    title: 'Destinations',
    body: html`<p>What is bound to the exchange <code>${found.exchange}</code> of the virtual host <code>${found.virtual_host}</code>${
      found.at !== null && html`, as RabbitMQ answered at ${utc(found.at)} UTC`
    }.</p>
${found.state === 'answered' ? shown(found, calls.may('createReplay')) : unknown(found)}`,
    sameAs: sameAs(origin, { command: ['destinations'], path: '/destinations' }),
  };
});

/** That nobody has configured it is no fault. */
function unknown({ state, because }: DestinationList): Content {
  if (state === 'not_configured') return html`<p class="empty">${because}.</p>`;
  return html`<div class="notice warn"><p>${because}.</p></div>`;
}

function shown({ warnings, items, has_more: hasMore }: DestinationList, mayReplay: boolean): Content {
  return html`${
    warnings.length > 0 &&
    html`<h2>Warnings</h2>
`
  }${noticeOf('bad', warnings.filter(isLost))}${noticeOf(
    'warn',
    warnings.filter((one) => !isLost(one)),
  )}
${renderTable<Destination>({ caption: 'Destinations', columns: columnsFor(mayReplay), items, empty: `${capitalized(NOTHING_BOUND)}.` })}
${hasMore && html`<p class="hint">${MORE_QUEUES}</p>`}`;
}

/** Events reach nobody now; the others wait for somebody. */
const isLost = ({ warning }: DestinationWarning) => warning !== 'no_consumers';

const noticeOf = (meaning: 'bad' | 'warn', warnings: readonly DestinationWarning[]): Content =>
  warnings.length > 0 &&
  html`<div class="notice ${meaning}"><ul>${warnings.map(({ message }) => html`<li>${seen(capitalized(message))}.</li>\n`)}</ul></div>`;

const columnsFor = (mayReplay: boolean): readonly Column<Destination>[] => [
  {
    head: 'Queue',
    cell: ({ name, what }) => html`<bdi>${seen(name)}</bdi>${what === 'exchange' && ' (an exchange)'}`,
    form: 'name',
  },
  { head: 'Receives', cell: receivedText, form: 'long' },
  {
    head: 'Binding keys',
    cell: ({ binding_keys: keys }) =>
      keys.map((key, index) => html`${index > 0 && ' '}<code>${seen(key)}</code>`),
    form: 'long',
  },
  { head: 'Messages', cell: depthText, form: 'number' },
  {
    head: 'Consumers',
    cell: ({ consumers }) => consumers !== null && exact(consumers),
    form: 'number',
  },
  { head: 'Type', cell: ({ type }) => type, form: 'brief' },
  { head: 'When full', cell: ({ overflow }) => overflow, form: 'brief', isOptional: true },
  { head: 'Policy', cell: ({ policy }) => seen(policy), form: 'brief', isOptional: true },
  {
    head: 'Replay',
    cell: ({ name, what }) =>
      mayReplay &&
      what === 'queue' &&
      html`<a href="${address('/console/replays/new', { queue: name })}">Replay to it</a>`,
    form: 'brief',
    isOptional: true,
  },
];
