// One source: its rates, its secrets by fingerprint, what the schemas do not know of it, who is refused, and how to point a
// sender at it. No secret is shown, since no operation answers with one.

import { type Content, html } from '../../web/index.ts';
import { get } from '../kernel/console/page.ts';
import { sameAs } from '../kernel/console/same-as.ts';
import { notFound } from '../kernel/operation/operation.ts';
import { renderFacts } from '../kernel/view/facts.ts';
import { address, deliveryHref } from '../kernel/view/links.ts';
import { exact, rate } from '../kernel/view/numbers.ts';
import { renderTable } from '../kernel/view/table.ts';
import { utc } from '../kernel/view/times.ts';
import { type Source, SourceList } from './contract.ts';
import { renderSenderGuide } from './sender-guide.pages.ts';

export const source = get('/source', ['listSources'], async ({ query, calls, origin, intake }) => {
  const name = query.get('name') ?? '';
  const { items } = await calls.call('listSources', SourceList);
  const found = items.find((item) => item.source === name);
  if (found === undefined) throw notFound('source');
  const { rates, configured } = found;
  return {
    title: `Source ${name}`,
    heading: html`Source <span class="id">${name}</span>`,
    body: html`${!configured && html`<p class="notice warn">${name === 'unknown' ? 'Deliveries to names that are not set up.' : 'This source is not set up on the replica that answered: its deliveries are refused.'}</p>`}
${renderFacts([
  ['Last delivery (UTC)', utc(found.last_delivery_at) ?? 'none on record'],
  [
    'Deliveries a minute',
    `${rate(rates.last_5m)} in 5 minutes, ${rate(rates.last_1h)} in an hour, ${rate(rates.last_24h)} in a day`,
  ],
  [
    'What it sent',
    html`<a href="${address('/console/deliveries', { source: name })}">deliveries</a>, <a href="${address('/console/jobs', { source: name })}">jobs</a>, <a href="${address('/console', { source: name, range: '24h' })}">outcomes and times</a>`,
  ],
])}
<h2>Secrets</h2>
${renderSecrets(found)}
<h2>Drift</h2>
${renderDrift(found)}
<h2>Refused or unauthorized</h2>
${renderRefused(found)}
${configured && renderSenderGuide({ name, intake })}`,
    sameAs: sameAs(origin, { command: ['sources'], path: '/sources' }),
  };
});

function renderSecrets({ source: name, secrets }: Source): Content {
  return html`${renderTable({
    caption: 'Secrets by their fingerprints',
    items: secrets,
    empty: 'No secret is set up for this name, and none has matched.',
    columns: [
      {
        head: 'Fingerprint',
        cell: ({ fingerprint }) =>
          html`<a class="id" href="${address('/console/deliveries', { source: name, secret_fingerprint: fingerprint })}">${fingerprint}</a>`,
        form: 'brief',
      },
      { head: 'Configured', cell: (secret) => (secret.configured ? 'yes' : 'no'), form: 'brief' },
      { head: 'Last matched (UTC)', cell: (secret) => utc(secret.last_matched_at) ?? 'never', form: 'brief' },
    ],
  })}
<p class="hint">You can remove an old secret that has not matched for longer than your senders ever pause.</p>`;
}

const renderDrift = ({ drift }: Source): Content =>
  renderTable({
    caption: 'Fields and statuses that the schemas do not know',
    items: drift,
    empty: 'None: everything received has fields and statuses that the schemas know.',
    columns: [
      { head: 'Unknown', cell: ({ kind }) => kind, form: 'brief' },
      { head: 'Name', cell: ({ name }) => name, form: 'long' },
      { head: 'In', cell: ({ kind, status }) => kind === 'field' && status, form: 'long', isOptional: true },
      { head: 'Type', cell: (item) => item.value_type, form: 'brief' },
      { head: 'Times seen', cell: ({ count }) => exact(count), form: 'number' },
      { head: 'First seen (UTC)', cell: (item) => utc(item.first_seen_at), form: 'brief' },
      { head: 'Last seen (UTC)', cell: (item) => utc(item.last_seen_at), form: 'brief' },
      {
        head: 'Newest',
        cell: (item) => html`<a href="${deliveryHref(item.sample_delivery_id)}">delivery</a>`,
        form: 'brief',
      },
    ],
  });

const renderRefused = ({ source: name, busiest_refused_addresses: refused }: Source): Content =>
  renderTable({
    caption: 'The addresses with the most deliveries that were refused or unauthorized in the last 24 hours',
    items: refused,
    empty: 'None in the last 24 hours.',
    columns: [
      {
        head: 'Address',
        cell: (item) =>
          html`<a href="${address('/console/deliveries', { source: name, remote_address: item.address })}">${item.address}</a>`,
      },
      { head: 'Count, at least', cell: ({ count }) => exact(count), form: 'number' },
    ],
  });
