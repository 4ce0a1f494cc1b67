// One step of a job's story: its lane, and what there is to say about it.

import { type Content, html } from '../../web/index.ts';
import { answerOf } from '../deliveries/contract.ts';
import { address, deliveryHref, eventHref, replayHref } from '../kernel/view/links.ts';
import { isDue } from '../outbox/contract.ts';
import { exact } from '../kernel/view/numbers.ts';
import { isPresent } from '../kernel/view/present.ts';
import { state } from '../kernel/view/states.ts';
import { explained, id, idLink, seen } from '../kernel/view/texts.ts';
import { duration, utc } from '../kernel/view/times.ts';
import type { StoryItem } from './contract.ts';
import type { TimeLineOptions } from './time-line.pages.ts';

export type Step = {
  readonly lane: 'delivery' | 'event' | 'bus' | 'operator';
  readonly what: Content;
  readonly state: Content;
  readonly text: Content;
  /** A button, or what a press has shown. */
  readonly below?: Content;
  /** It came of what stands in the lane before it. */
  readonly isEffect: boolean;
  readonly anchor?: string;
};

type Item<What extends StoryItem['what']> = Extract<StoryItem, { what: What }>;

export function describeStep(item: StoryItem, options: TimeLineOptions): Step {
  switch (item.what) {
    case 'delivery':
      return ofDelivery(item, options);
    case 'event':
      return ofEvent(item, options);
    case 'publication':
      return ofPublication(item, options);
    case 'waiting':
      return ofEntry(item, options);
    case 'replay':
      return ofReplay(item);
    case 'replay_skip':
      return ofSkip(item, options);
    case 'operator':
      return ofOperator(item);
  }
}

const anchorOf = (deliveryId: string) => `delivery-${deliveryId}`;

function ofDelivery({ delivery }: Item<'delivery'>, options: TimeLineOptions): Step {
  const { id: deliveryId, status, progress_percentage: percent } = delivery;
  return {
    lane: 'delivery',
    what: html`<a href="${deliveryHref(deliveryId)}">Delivery</a>`,
    state: state(delivery.outcome),
    text: joined([
      `answered with ${answerOf(delivery)}`,
      seen(percent === null ? status : `${status} ${percent} %`),
      id(delivery.error_code),
      seen(delivery.reason),
      delivery.outcome === 'duplicate' && repeats(delivery, options),
      delivery.released_at !== null && html`released ${utc(delivery.released_at)}`,
      delivery.discarded_at !== null && html`discarded ${utc(delivery.discarded_at)}`,
    ]),
    below: renderBody(delivery, options),
    isEffect: false,
    anchor: anchorOf(deliveryId),
  };
}

/** Why it has no body to show. */
const repeats = ({ event_id: eventId }: Item<'delivery'>['delivery'], options: TimeLineOptions): Content =>
  eventId !== null &&
  html`repeats ${idLink(eventHref(eventId), shortId(eventId, options))}, so its body is not kept`;

function renderBody(
  { id: deliveryId, body_kept: isKept }: Item<'delivery'>['delivery'],
  options: TimeLineOptions,
): Content {
  const { body, mayRead } = options;
  if (body?.of === deliveryId) return body.content;
  if (!isKept || !mayRead) return undefined;
  return renderPress(options, { anchor: anchorOf(deliveryId), name: 'Show the body', body: deliveryId });
}

/** A form that shows this page once more, with what it asks for. */
function renderPress(
  { job: { source, job_id, cursor } }: TimeLineOptions,
  { anchor, name, body }: { anchor: string; name: string; body?: string },
): Content {
  const fields = Object.entries({ source, job_id, cursor, body }).filter(([, value]) => value !== undefined);
  return html`<form method="post" action="${address('/console/job', { source, job_id, cursor })}#${anchor}">${fields.map(([field, value]) => html`<input type="hidden" name="${field}" value="${value}">`)}<button class="plain">${name}</button></form>`;
}

function ofEvent({ event }: Item<'event'>, options: TimeLineOptions): Step {
  const anchor = `event-${event.sequence}`;
  const isMessageHidden = event.kind === 'failed' && event.error_message === undefined && options.mayRead;
  return {
    lane: 'event',
    what: 'Event',
    state: state(event.kind),
    text: joined([
      idLink(eventHref(event.id), shortId(event.id, options)),
      id(event.error_code),
      event.late && 'late',
      event.repeats > 0 && `repeated ${event.repeats === 1 ? 'once' : `${exact(event.repeats)} times`}`,
      html`<a href="#${anchorOf(event.delivery_id)}">its delivery</a>`,
    ]),
    below:
      event.error_message === undefined
        ? isMessageHidden && renderPress(options, { anchor, name: 'Show the error message' })
        : html`<p class="error-message">${seen(event.error_message)}</p>`,
    isEffect: true,
    anchor,
  };
}

function ofPublication({ publication }: Item<'publication'>, options: TimeLineOptions): Step {
  const { event_id: eventId, replay_id: replay, queue } = publication;
  return {
    lane: 'bus',
    what: 'Publication',
    state: state(publication.result),
    text: joined([
      idLink(eventHref(eventId), shortId(eventId, options)),
      `in ${duration(publication.duration_ms)}`,
      publication.attempt > 1 && `attempt ${publication.attempt}`,
      seen(publication.detail),
      queue !== null && html`to the queue ${id(queue)}`,
      replay !== null && html`<a href="${replayHref(replay)}">of a replay</a>`,
    ]),
    isEffect: true,
  };
}

function ofEntry({ entry }: Item<'waiting'>, options: TimeLineOptions): Step {
  return {
    lane: 'bus',
    what: 'In the outbox',
    state: state(entry.state),
    text: joined([
      idLink(eventHref(entry.event_id), shortId(entry.event_id, options)),
      entry.state === 'pending' && dueOf(entry, options),
      entry.attempts > 0 && `${exact(entry.attempts)} ${entry.attempts === 1 ? 'attempt' : 'attempts'}`,
      explained(entry.last_error),
      entry.replay_id !== null && html`<a href="${replayHref(entry.replay_id)}">of a replay</a>`,
      entry.state !== 'pending' &&
        entry.replay_id === null &&
        html`<a href="${entryHref(entry)}">${options.mayDecide ? 'decide on it' : 'see it in the outbox'}</a>`,
    ]),
    isEffect: true,
  };
}

/** An event whose time has come may still have to wait behind another one of its job. */
function dueOf(entry: Item<'waiting'>['entry'], options: TimeLineOptions): Content {
  const { waits_behind: ahead, due_at: due } = entry;
  if (!ahead) return isDue(entry) ? 'due now' : html`due ${utc(due)}`;
  return html`waits for ${idLink(entryHref(entry), shortId(ahead.event_id, options))}, which is ${ahead.state}`;
}

/** In the outbox, where one decides. */
const entryHref = ({ source, job_id }: Item<'waiting'>['entry']): string =>
  address('/console/outbox', { source, job_id });

function ofReplay({ replay }: Item<'replay'>): Step {
  return {
    lane: 'operator',
    what: 'Replay',
    state: state(replay.state),
    text: joined([
      html`<a class="id" href="${replayHref(replay.id)}">${replay.id}</a>`,
      `by ${seen(replay.created_by)}`,
      replay.queue !== null && html`to the queue ${id(replay.queue)}`,
      replay.duration_ms !== null && `took ${duration(replay.duration_ms)}`,
      seen(replay.note),
    ]),
    isEffect: false,
  };
}

function ofSkip({ skip }: Item<'replay_skip'>, options: TimeLineOptions): Step {
  return {
    lane: 'operator',
    what: 'Skipped by a replay',
    state: undefined,
    text: joined([
      idLink(eventHref(skip.event_id), shortId(skip.event_id, options)),
      seen(skip.reason),
      html`<a href="${replayHref(skip.replay_id)}">the replay</a>`,
    ]),
    isEffect: false,
  };
}

function ofOperator({ operator }: Item<'operator'>): Step {
  return {
    lane: 'operator',
    what: `${seen(operator.actor)}`,
    state: html`<code>${operator.action}</code>`,
    text: joined([id(operator.subject), operator.result, seen(operator.note)]),
    isEffect: false,
  };
}

/** Without the source and the job, which the page names: `processing:45`. */
function shortId(eventId: string, { job: { source, job_id } }: TimeLineOptions): string {
  const prefix = `${source}:${job_id}:`;
  return eventId.startsWith(prefix) ? eventId.slice(prefix.length) : eventId;
}

const joined = (parts: readonly Content[]): Content =>
  parts.filter(isPresent).map((part, index) => html`${index > 0 && ' · '}${part}`);
