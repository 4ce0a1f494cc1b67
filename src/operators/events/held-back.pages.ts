// An event that a decision keeps from the bus: why, and what sends it again. Of a returned one, the routing key for which no queue
// was bound, and the line that binds one.

import { shellWord } from '../../base/text/shell-word.ts';
import { type Content, type Html, html } from '../../web/index.ts';
import type { Calls } from '../kernel/console/calls.ts';
import { orderHref } from '../kernel/order/selection.pages.ts';
import { forOperators } from '../kernel/view/for-operators.ts';
import { address } from '../kernel/view/links.ts';
import { publicationState } from '../kernel/view/states.ts';
import { seen } from '../kernel/view/texts.ts';
import type { EventDetail } from './contract.ts';

type Held = Pick<EventDetail, 'id' | 'source' | 'job_id' | 'publication' | 'published_to'>;

export const isHeldBack = (publication: string): boolean =>
  publication === 'returned' || publication === 'parked';

export const retryLink = (id: string): Html =>
  html`<a href="${orderHref('outbox/retry', { ids: id })}">Retry …</a>`;

export function renderHeldBack(event: Held, { may }: Calls): Content {
  const { id, source, job_id: jobId, publication, published_to: to } = event;
  if (!isHeldBack(publication)) return undefined;
  return html`<div class="notice warn">${
    publication === 'returned'
      ? html`<p>${publicationState(publication)}: no queue was bound for its routing key when it was sent.</p>${to && renderBinding(to)}`
      : html`<p>${publicationState(publication)}: later events of its job wait behind it. <a href="${address('/console/outbox', { source, job_id: jobId })}">The outbox</a> says why.</p>`
  }${
    may('retryEntries')
      ? html`<p class="actions"><a class="button" href="${orderHref('outbox/retry', { ids: id })}">Retry …</a></p>`
      : forOperators('Retrying is')
  }</div>`;
}

const renderBinding = ({ exchange, routing_key: key }: NonNullable<Held['published_to']>): Html =>
  html`<p>To receive such events, a queue must be bound for them, by the account of its subscriber. In its program, or from a shell:</p>
<p><code data-copy>await channel.bindQueue(QUEUE, ${JSON.stringify(seen(exchange))}, ${JSON.stringify(seen(key))});</code></p>
<p><code data-copy>rabbitmqadmin declare binding ${shellWord(`source=${seen(exchange)}`)} destination=QUEUE destination_type=queue ${shellWord(`routing_key=${seen(key)}`)}</code></p>`;
