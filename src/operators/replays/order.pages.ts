// The form that starts a replay. Its state is its address, and below it stands what the replay would publish: the dry run. The
// button acts on what was shown, since it sends the dry run's upper bound.

import type { z } from 'zod';
import { type Content, type Html, html } from '../../web/index.ts';
import { inWords } from '../kernel/console/fault-words.ts';
import { get, type Page, post, type View, type Visit } from '../kernel/console/page.ts';
import { markedNotice, marksOf, renderField } from '../kernel/list/filter-form.pages.ts';
import { DestinationList } from '../destinations/contract.ts';
import { faultsIn, type InputFault } from '../kernel/operation/input-faults.ts';
import { ApiError } from '../kernel/operation/operation.ts';
import { hiddenFields, keyField, keyIn } from '../kernel/view/act.ts';
import { address, eventHref, jobHref, replayHref } from '../kernel/view/links.ts';
import { counted } from '../kernel/view/numbers.ts';
import { state } from '../kernel/view/states.ts';
import { type Column, renderTable } from '../kernel/view/table.ts';
import { capitalized } from '../kernel/view/texts.ts';
import { duration, utc } from '../kernel/view/times.ts';
import { queueNotice, Replay, ReplayPreview } from './contract.ts';
import {
  ADDRESS_MAX,
  fieldsOf,
  namesEvents,
  orderOf,
  type ReplayForm,
  readReplayForm,
  sameReplay,
} from './form.pages.ts';
import { REPLAY_RATE_DEFAULT, REPLAY_RATE_MAX, replayEventFilters } from './order.contract.ts';

export const PATH = '/console/replays/new';
type Preview = z.output<typeof ReplayPreview>;

export const newReplay: Page = get('/replays/new', ['createReplay'], (visit) =>
  viewReplay(visit, readReplayForm(visit.query)),
);

/** @param told what is to be known of how the events were chosen */
export async function viewReplay(visit: Visit, form: ReplayForm, told?: Content): Promise<View> {
  const [found, queues] = await Promise.all([
    namesEvents(form) ? preview(visit, form) : undefined,
    knownQueues(visit),
  ]);
  const isRefused = found instanceof ApiError;
  const faults = isRefused ? fieldFaults(found) : [];
  return {
    title: 'New replay',
    ...(isRefused && { status: found.status }),
    body: html`<p>Publishes events again, with their original ids. Subscribers recognize the copies by the header <code>replay</code>.</p>
${told}
${renderForm(form, visit, { queues, faults })}
<section id="preview" aria-live="polite" aria-label="What it would publish">${
      found === undefined
        ? html`<p class="empty">Enter event ids or choose filters to see what would be published.</p>`
        : isRefused
          ? renderRefusal(found, faults)
          : renderPreview(found, form)
    }</section>`,
    sameAs: found === undefined || isRefused ? undefined : sameReplay(visit.origin, form, orderOf(form)),
  };
}

export const createReplay: Page = post('/replays/new', ['createReplay'], async (visit) => {
  const form = readReplayForm(visit.form);
  const body = orderOf(form);
  const { id } = await visit.calls.call('createReplay', Replay, { body, key: keyIn(visit.form) });
  return { seeOther: replayHref(id) };
});

/** What was asked wrongly is shown beside the form. @throws ApiError for anything else */
async function preview({ calls }: Visit, form: ReplayForm): Promise<Preview | ApiError> {
  try {
    return await calls.call('createReplay', ReplayPreview, { body: { ...orderOf(form), dry_run: true } });
  } catch (error) {
    if (error instanceof ApiError && [400, 403, 404].includes(error.status)) return error;
    throw error;
  }
}

/** By the fields of the form: `kind` of `filter.kind`, `event_ids` of the first of them that is at fault. */
const fieldFaults = (error: ApiError): readonly InputFault[] =>
  faultsIn(error)
    .map(({ name, message }) => {
      const [, line] = /^event_ids\.(\d+)$/.exec(name) ?? [];
      if (line !== undefined) return { name: 'event_ids', message: `line ${Number(line) + 1} ${message}` };
      return { name: name.replace(/^filter\./, ''), message };
    })
    .filter(({ name }) => FIELDS.has(name));

const FIELDS = new Set([...Object.keys(replayEventFilters), 'event_ids', 'queue', 'rate_per_second', 'note']);

const renderRefusal = (error: ApiError, faults: readonly InputFault[]): Html =>
  faults.length === 0
    ? html`<div class="notice bad"><p>${inWords(error)}</p></div>`
    : markedNotice(faults, 'field');

/** None where RabbitMQ is not asked, or did not answer. */
async function knownQueues({ calls }: Visit): Promise<readonly string[]> {
  if (!calls.may('listDestinations')) return [];
  return (await calls.call('listDestinations', DestinationList)).queues;
}

function renderForm(
  form: ReplayForm,
  { sources }: Visit,
  { queues, faults }: { queues: readonly string[]; faults: readonly InputFault[] },
): Html {
  const { values, eventIds, queue, rate, note } = form;
  const field = (name: string) => renderField(name, { filters: replayEventFilters, values, sources, faults });
  const ids = marksOf('event_ids', faults);
  const toQueue = marksOf('queue', faults);
  const ofRate = marksOf('rate_per_second', faults);
  const why = marksOf('note', faults);
  const isMoreSet = MORE.some((name) => values[name] !== undefined);
  const isLong = address(PATH, fieldsOf(form, undefined)).length > ADDRESS_MAX;
  return html`<form class="replay" ${isLong ? html`method="post" action="/console/replays/choose"` : html`action="${PATH}"`} data-preview="preview">
<fieldset><legend>All events that match</legend>
<div class="filters">${FIRST.map(field)}<details${isMoreSet && html` open`}><summary>More filters</summary><div class="filters">${MORE.map(field)}</div></details></div></fieldset>
<details${eventIds.length > 0 && html` open`}><summary>Or only these events</summary>
<label>Event ids, one per line <textarea name="event_ids" rows="3" cols="60" spellcheck="false"${ids.marks}>${eventIds.join('\n')}</textarea>${ids.said}</label></details>
<fieldset><legend>Options</legend>
<div class="filters">
<label class="wide">Only to this queue <input name="queue" value="${queue ?? ''}" placeholder="empty: the exchange" spellcheck="false" autocomplete="off" list="queues"${toQueue.marks}>${toQueue.said}</label>
<datalist id="queues">${queues.map((name) => html`<option value="${name}"></option>`)}</datalist>
<label>Copies per second <input name="rate_per_second" type="number" min="1" max="${REPLAY_RATE_MAX}" value="${rate ?? ''}" placeholder="${REPLAY_RATE_DEFAULT}"${ofRate.marks}>${ofRate.said}</label>
<label class="wide">Why <input name="note" value="${note ?? ''}" maxlength="500" placeholder="shown with the replay"${why.marks}>${why.said}</label>
</div></fieldset>
<p class="actions"><button>Preview</button></p>
</form>`;
}

const FIRST = ['source', 'kind', 'job_id', 'from', 'to'];
const MORE = Object.keys(replayEventFilters).filter((name) => !FIRST.includes(name));

/** In the words of the API's refusal. */
function renderQueueNotice({ queue_state: known }: Preview, { queue }: ReplayForm): Content {
  const notice = queue === undefined ? undefined : queueNotice(queue, known);
  if (notice === undefined) return undefined;
  return html`<div class="notice ${known === 'missing' ? 'bad' : 'warn'}"><p>${capitalized(notice)}.</p></div>`;
}

function renderPreview(found: Preview, form: ReplayForm): Content {
  const { matched, matched_exactly: isExact, sample, matched_before: to } = found;
  const amount = counted(matched, 'event', isExact);
  if (matched === 0 && isExact)
    return html`${renderQueueNotice(found, form)}<p class="empty">No events match.</p>`;
  const { filter } = orderOf(form);
  const bounded = filter && { ...filter, ...(to !== null && { to }) };
  const rate = Number(form.rate ?? REPLAY_RATE_DEFAULT);
  const least = isExact ? 'about' : 'at least';
  return html`<h2>${amount}</h2>
${renderQueueNotice(found, form)}
${
  to !== null &&
  html`<p>Accepted before ${utc(to)} UTC; later ones are not included.</p>
`
}${
  found.queue_state !== 'missing' &&
  html`<p>To ${whereOf(form.queue)}, in ${least} ${duration(Math.max(1_000, (matched / rate) * 1_000))}.</p>
<form method="post" action="${PATH}">${hiddenFields(fieldsOf(form, bounded))}${keyField()}
<p class="actions"><button class="main">Replay ${isExact ? '' : 'at least '}${counted(matched, 'event')} to ${whereOf(form.queue)}</button></p></form>`
}
${renderTable({ caption: matched > sample.length ? `The first ${sample.length} of them` : 'All of them', columns: EVENT_COLUMNS, items: sample, empty: 'None found so far: there are many to look through.' })}`;
}

const whereOf = (queue: string | undefined) => (queue === undefined ? 'the exchange' : `the queue ${queue}`);

const EVENT_COLUMNS: readonly Column<Preview['sample'][number]>[] = [
  { head: 'Event', cell: ({ id }) => html`<a class="id" href="${eventHref(id)}">${id}</a>`, form: 'name' },
  {
    head: 'Job',
    cell: (event) => html`<a class="id" href="${jobHref(event.source, event.job_id)}">${event.job_id}</a>`,
    form: 'name',
  },
  { head: 'Source', cell: ({ source }) => source, form: 'brief' },
  { head: 'Kind', cell: ({ kind }) => state(kind), form: 'brief' },
  { head: 'Recorded (UTC)', cell: (event) => utc(event.recorded_at), form: 'brief' },
];
