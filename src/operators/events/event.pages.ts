// One event with its publications, and the message that subscribers get. The message is made from a body, so it is shown at a
// press.

import { parseEventId } from '../../event/index.ts';
import { type Content, html } from '../../web/index.ts';
import { get, type Page, post, type View, type Visit } from '../kernel/console/page.ts';
import { sameAs } from '../kernel/console/same-as.ts';
import { prettyJson, renderText } from '../kernel/view/body.ts';
import { renderFacts } from '../kernel/view/facts.ts';
import { address, deliveryHref, eventHref, jobHref, replayHref } from '../kernel/view/links.ts';
import { missing } from '../kernel/view/missing.ts';
import { exact } from '../kernel/view/numbers.ts';
import { publicationState, state } from '../kernel/view/states.ts';
import { renderTable } from '../kernel/view/table.ts';
import { copyable, explained, id, idLink, seen } from '../kernel/view/texts.ts';
import { duration, utc } from '../kernel/view/times.ts';
import { SentCloudEvent } from './cloud-event.contract.ts';
import { EventDetail, PUBLICATIONS_SHOWN_MAX } from './contract.ts';
import { renderHeldBack } from './held-back.pages.ts';

const SHOW = 'showEvent';
const MESSAGE = 'showCloudEvent';

async function view(visit: Visit, eventId: string, message?: SentCloudEventShape): Promise<View> {
  const event = await visit.calls.find(SHOW, EventDetail, { params: { id: eventId } });
  if (event === undefined) return noEvent(eventId);
  return {
    title: `Event ${seen(event.id)}`,
    heading: html`Event ${copyable(event.id)}`,
    body: html`${renderHeldBack(event, visit.calls)}${renderEventFacts(event)}
<h2>Publications</h2>
${renderPublications(event)}
${visit.calls.may('createReplay') && html`<p class="actions"><a class="button" href="${address('/console/replays/new', { event_ids: event.id })}">Replay …</a></p>`}
<h2 id="message">As subscribers receive it</h2>
${message === undefined ? renderButton(visit, event) : renderMessage(message, event)}`,
    sameAs: sameAs(visit.origin, {
      command: ['events', 'show', event.id],
      path: `/events/${encodeURIComponent(event.id)}`,
    }),
  };
}

type Event = Awaited<ReturnType<typeof EventDetail.parse>>;
type SentCloudEventShape = ReturnType<typeof SentCloudEvent.parse>;

function noEvent(eventId: string): View {
  const jobId = parseEventId(eventId)?.jobId;
  const job =
    jobId !== undefined &&
    html` Look for its job: <a href="${address('/console/jobs', { job_id: jobId })}">${seen(jobId)}</a>.`;
  return missing(
    'event',
    html`An event’s id is its source, its job and its status: <code>default:job_7f3a:completed</code>.${job}`,
  );
}

const renderEventFacts = (event: Event): Content =>
  renderFacts([
    ['Kind', state(event.kind)],
    ['Source', event.source],
    ['Job', idLink(jobHref(event.source, event.job_id), event.job_id)],
    ['Progress', event.progress_percentage !== null && `${event.progress_percentage} %`],
    ['Error code', id(event.error_code)],
    ['Recorded (UTC)', utc(event.recorded_at)],
    ['Occurred (UTC)', utc(event.occurred_at)],
    ['Late', event.late && 'yes, it arrived after a later state of its job'],
    ['Delivery', html`<a class="id" href="${deliveryHref(event.delivery_id)}">${event.delivery_id}</a>`],
    ['Repeated', event.repeats > 0 && `${exact(event.repeats)} ${event.repeats === 1 ? 'time' : 'times'}`],
    ['Sequence', event.sequence],
    ['On the bus', publicationState(event.publication)],
    ['Routing key', id(event.published_to?.routing_key)],
  ]);

function renderPublications({ id: eventId, source, job_id: jobId, publications }: Event): Content {
  return html`${renderTable({
    caption: 'Publications of this event, newest first',
    columns: [
      { head: 'Published (UTC)', cell: (item) => utc(item.published_at), form: 'brief' },
      { head: 'Result', cell: ({ result }) => state(result), form: 'brief' },
      { head: 'Attempt', cell: ({ attempt }) => attempt, form: 'number' },
      { head: 'Took', cell: (item) => duration(item.duration_ms), form: 'number' },
      {
        head: 'Detail',
        cell: ({ detail }) => explained(detail),
        form: 'text',
        isOptional: true,
      },
      {
        head: 'Replay',
        cell: ({ replay_id: replay }) =>
          replay !== null && html`<a class="id" href="${replayHref(replay)}">${replay}</a>`,
        form: 'brief',
        isOptional: true,
      },
      { head: 'Queue', cell: ({ queue }) => id(queue), isOptional: true },
    ],
    items: publications,
    empty: html`Not published yet: <a href="${address('/console/outbox', { source, job_id: jobId })}">the outbox</a> says what it waits for.`,
  })}${
    publications.length === PUBLICATIONS_SHOWN_MAX &&
    html`<p><a href="${address('/console/publications', { event_id: eventId })}">All publications of this event</a></p>`
  }`;
}

function renderButton({ calls }: Visit, event: Event): Content {
  if (!calls.may(MESSAGE))
    return html`<p class="dim">Only the role auditor and above may see the message.</p>`;
  return html`<form method="post" action="${eventHref(event.id)}#message"><input type="hidden" name="id" value="${event.id}"><button>Show the CloudEvent</button></form>
<p class="hint">It is made from the body of the delivery. Each view is recorded in the operator log.</p>`;
}

function renderMessage(message: SentCloudEventShape, { id: eventId }: Event): Content {
  return html`${renderFacts([
    ['Exchange', id(message.exchange)],
    ['Routing key', id(message.routing_key)],
    ['Message id', id(message.message_id)],
    ['Type', id(message.type)],
    ['Content type', id(message.content_type)],
    ['Timestamp (UTC)', utc(message.timestamp)],
  ])}
${renderText(prettyJson(message.body) ?? message.body)}
<details><summary>As it is published, on one line</summary>${renderText(message.body)}</details>
<form method="post" action="/console/event/download"><input type="hidden" name="id" value="${eventId}"><button>Download</button></form>`;
}

const askMessage = (visit: Visit, eventId: string) =>
  visit.calls.call(MESSAGE, SentCloudEvent, { params: { id: eventId } });

export const eventPages: readonly Page[] = [
  get('/event', [SHOW], (visit) => view(visit, visit.query.get('id') ?? '')),
  post('/event', [SHOW, MESSAGE], async (visit) => {
    const eventId = visit.form.get('id') ?? '';
    return view(visit, eventId, await askMessage(visit, eventId));
  }),
  post('/event/download', [MESSAGE], async (visit) => {
    const { body, message_id: name } = await askMessage(visit, visit.form.get('id') ?? '');
    return { bytes: Buffer.from(body), filename: `${name}.json` };
  }),
];
