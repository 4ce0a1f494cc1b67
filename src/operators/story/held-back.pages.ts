// What a job reported that is not on the bus, and where one decides on it. It stands above the job's story: what arrived is not yet
// what subscribers know.

import { type Content, type Html, html } from '../../web/index.ts';
import { nameOfAhead, whyOf } from '../outbox/contract.ts';
import { address, deliveryHref, eventHref } from '../kernel/view/links.ts';
import { state } from '../kernel/view/states.ts';
import { explained, idLink, seen } from '../kernel/view/texts.ts';
import { utc } from '../kernel/view/times.ts';
import type { HeldBack } from './contract.ts';

type Entry = HeldBack['entries'][number];
type Quarantined = HeldBack['quarantined'][number];
type Job = { readonly source: string; readonly job_id: string };

export function renderHeldBack(
  { entries, quarantined }: HeldBack,
  { job: { source, job_id }, mayDecide }: { job: Job; mayDecide: boolean },
): Content {
  if (entries.length + quarantined.length === 0) return undefined;
  const link = (path: string, decide: string, look: string) =>
    html`<p><a href="${address(path, { source, job_id })}">${mayDecide ? decide : look}</a></p>`;
  return html`<div class="notice warn">${
    entries.length > 0 &&
    html`<p><strong class="state warn">Not on the bus yet</strong>, so no subscriber knows:</p><ul>${entries.map(ofEntry)}</ul>
${link('/console/outbox', 'Decide on it in the outbox', 'See it in the outbox')}`
  }${
    quarantined.length > 0 &&
    html`<p><strong class="state warn">In quarantine</strong>, so not counted as reported:</p><ul>${quarantined.map(ofDelivery)}</ul>
${link('/console/quarantine', 'Release or discard it in the quarantine', 'See it in the quarantine')}`
  }</div>`;
}

function ofEntry(entry: Entry): Html {
  const { event_id: eventId, source, job_id: job, recorded_at: since, waits_behind: ahead } = entry;
  const name = eventId.slice(`${source}:${job}:`.length);
  const why = ahead
    ? html`waits for ${idLink(eventHref(ahead.event_id), nameOfAhead(entry))}, which is ${state(ahead.state)}`
    : explained(whyOf(entry));
  return html`<li>${idLink(eventHref(eventId), name)}, ${state(entry.state)} since ${utc(since)}${why && html`: ${why}`}</li>`;
}

const ofDelivery = ({ delivery_id: id, received_at: at, status, reason }: Quarantined): Html =>
  html`<li><a href="${deliveryHref(id)}">${seen(status) ?? 'a delivery'} of ${utc(at)}</a>: ${seen(reason)}</li>`;
