// What is known of a delivery beside its body.

import { type Content, html } from '../../web/index.ts';
import { renderFacts } from '../kernel/view/facts.ts';
import { eventHref, jobHref } from '../kernel/view/links.ts';
import { exact } from '../kernel/view/numbers.ts';
import { state } from '../kernel/view/states.ts';
import { renderTable } from '../kernel/view/table.ts';
import { id, idLink, seen, size } from '../kernel/view/texts.ts';
import { utc } from '../kernel/view/times.ts';
import { answerOf, type DeliveryDetail } from './contract.ts';

export function renderDeliveryFacts(delivery: DeliveryDetail): Content {
  const { source, job_id: jobId, event_id: eventId, progress_percentage: percent } = delivery;
  return renderFacts([
    ['Outcome', html`${state(delivery.outcome)}, answered with ${answerOf(delivery)}`],
    ['Reason', seen(delivery.reason)],
    ['Received (UTC)', utc(delivery.received_at)],
    ['Source', source],
    ['Job', jobId !== null && idLink(jobHref(source, jobId), jobId)],
    ['Status as sent', seen(percent === null ? delivery.status : `${delivery.status} ${percent} %`)],
    ['Error code', id(delivery.error_code)],
    [EVENT_WORDS[delivery.outcome] ?? 'Event', eventId !== null && idLink(eventHref(eventId), eventId)],
    ['Path', id(delivery.path)],
    ['From', id(delivery.remote_address)],
    ['Via proxy', id(delivery.peer_address)],
    ['Signed with the secret', id(delivery.secret_fingerprint)],
    ['Body', delivery.body_bytes !== null && `${sizeWithBytes(delivery.body_bytes)}`],
    ['SHA-256 of the body', id(delivery.body_sha256)],
    ['Released (UTC)', utc(delivery.released_at)],
    ['Discarded (UTC)', utc(delivery.discarded_at)],
    ['Discarded by', seen(delivery.discarded_by)],
    ['Note', seen(delivery.discard_note)],
  ]);
}

const EVENT_WORDS: Readonly<Record<string, string>> = {
  accepted: 'Created the event',
  duplicate: 'Repeated the event',
  conflict: 'Contradicts the event',
  quarantined: 'Created the event',
};

const sizeWithBytes = (bytes: number) =>
  bytes < 1024 ? size(bytes) : `${size(bytes)} (${exact(bytes)} bytes)`;

export function renderHeaders(headers: Readonly<Record<string, unknown>>): Content {
  return renderTable({
    caption: 'Headers',
    columns: [
      { head: 'Name', cell: ([name]) => id(name), form: 'brief' },
      {
        head: 'Value',
        cell: ([, value]) => html`<bdi>${seen([value].flat().join(', '))}</bdi>`,
        form: 'long',
      },
    ],
    items: Object.entries(headers),
    empty: 'The headers of this delivery are not kept.',
  });
}
