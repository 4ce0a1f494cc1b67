// The list of sources: who sends, how much, and what is odd about it.

import { type Content, html } from '../../web/index.ts';
import { get } from '../kernel/console/page.ts';
import { sameAs } from '../kernel/console/same-as.ts';
import { address, sourceHref } from '../kernel/view/links.ts';
import { exact, rate } from '../kernel/view/numbers.ts';
import { renderTable } from '../kernel/view/table.ts';
import { utc } from '../kernel/view/times.ts';
import { outcomeWord } from '../kernel/list/fields.contract.ts';
import { type Source, SourceList } from './contract.ts';

/** Each leads to its list; what was answered with 503 left no delivery. */
function errorsOf({ source, errors_24h: errors = {} }: Source): Content {
  const from = new Date(Date.now() - DAY_MS).toISOString();
  const parts = Object.entries(errors).map(([outcome, count]) => {
    const text = `${exact(count)} ${outcomeWord(outcome, count)}`;
    if (outcome === 'unavailable') return html`${text}`;
    return html`<a href="${address('/console/deliveries', { source, outcome, from })}">${text}</a>`;
  });
  return parts.map((part, index) => html`${index > 0 && ', '}${part}`);
}

const DAY_MS = 86_400_000;

export const sources = get('/sources', ['listSources'], async ({ calls, origin }) => {
  const { items } = await calls.call('listSources', SourceList);
  return {
    title: 'Sources',
    body: renderTable<Source>({
      caption: 'Sources',
      items,
      empty: html`A source appears here once it is configured: set <code>SIGNING_SECRETS</code>, or name sources in the file of <code>SOURCES_FILE</code>.`,
      columns: [
        {
          head: 'Source',
          cell: ({ source }) => html`<a href="${sourceHref(source)}">${source}</a>`,
          form: 'brief',
        },
        { head: 'Configured', cell: ({ configured }) => (configured ? 'yes' : 'no'), form: 'brief' },
        { head: 'Last delivery (UTC)', cell: (item) => utc(item.last_delivery_at), form: 'brief' },
        { head: 'Per minute, 5 min', cell: ({ rates }) => rate(rates.last_5m), form: 'number' },
        { head: 'Per minute, 1 h', cell: ({ rates }) => rate(rates.last_1h), form: 'number' },
        { head: 'Per minute, 24 h', cell: ({ rates }) => rate(rates.last_24h), form: 'number' },
        { head: 'Errors, 24 h', cell: errorsOf, form: 'long' },
        { head: 'Secrets', cell: (item) => exact(item.secrets.length), form: 'number' },
        { head: 'Drift', cell: ({ drift }) => exact(drift.length), form: 'number' },
      ],
    }),
    sameAs: sameAs(origin, { command: ['sources'], path: '/sources' }),
  };
});
