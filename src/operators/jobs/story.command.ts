// The columns of a job's story: for each step when it was, what it was, and the details that matter.

import { isDue } from '../outbox/contract.ts';
import { count, counted, duration, time } from '../../terminal/readable.ts';
import type { Column } from '../../terminal/table.ts';
import {
  type Answers,
  actionDetails,
  answerOf,
  ERROR_MESSAGE_MAX_LENGTH,
  type Items,
  statusOf,
} from '../client/index.ts';
import { colourOf, timeColumn } from '../kernel/list/looks.command.ts';

type StoryItem = Answers['story']['items'][number];
type Publication = Items['publications'];
type Entry = Items['outbox'];
type EventOfJob = Extract<StoryItem, { readonly event: unknown }>['event'];

export const STORY_COLUMNS: readonly Column<StoryItem>[] = [
  timeColumn('at (UTC)', (item) => item.at),
  {
    head: 'after',
    text: (item) => (item.after_ms === null ? '' : `+${duration(item.after_ms)}`),
    right: true,
  },
  { head: 'what', text: (item) => item.what.replaceAll('_', ' ') },
  { head: 'result', text: (item) => resultOf(item), colour: (item) => colourOf(resultOf(item)) },
  // In the row if it is wide enough for an id and the word before it.
  {
    head: 'details',
    text: (item) => detailsOf(item),
    wrapTo: 44,
    below: 'first',
    unlabelled: true,
  },
];

function resultOf(item: StoryItem): string {
  if ('delivery' in item) return item.delivery.outcome;
  if ('event' in item) return item.event.kind;
  if ('publication' in item) return item.publication.result;
  if ('entry' in item) return item.entry.state;
  if ('replay' in item) return item.replay.state;
  if ('operator' in item) return item.operator.action;
  return '';
}

function detailsOf(item: StoryItem): string {
  if ('delivery' in item) return deliveryDetails(item.delivery);
  if ('event' in item) return eventDetails(item.event);
  if ('publication' in item) return publicationDetails(item.publication);
  if ('entry' in item) return entryDetails(item.entry);
  if ('replay' in item) return replayDetails(item.replay);
  if ('operator' in item)
    return joined(item.operator.subject, `by ${item.operator.actor}`, actionDetails(item.operator));
  if ('skip' in item) return `${item.skip.event_id}: ${item.skip.reason}, replay ${item.skip.replay_id}`;
  return '';
}

const joined = (...parts: readonly (string | null | false)[]) => parts.filter(Boolean).join(', ');

function deliveryDetails(item: Items['deliveries']): string {
  const { error_code: error, reason, id } = item;
  return joined(answerOf(item), statusOf(item), error, reason, `id ${id}`);
}

function eventDetails(item: EventOfJob): string {
  const repeats =
    item.repeats > 0 && `repeated ${item.repeats === 1 ? 'once' : `${count(item.repeats)} times`}`;
  const error = [item.error_code, item.error_message].filter(Boolean).join(': ');
  return joined(
    item.id,
    error,
    isCut(item) && `cut: all of it is in "deliveries show ${item.delivery_id} --body"`,
    item.late && 'late',
    repeats,
  );
}

const isCut = ({ error_message: text }: EventOfJob) =>
  text !== undefined && text.endsWith('…') && Array.from(text).length === ERROR_MESSAGE_MAX_LENGTH;

function publicationDetails(item: Publication): string {
  const which = item.attempt > 1 && `attempt ${item.attempt}`;
  const replay = item.replay_id !== null && `replay ${item.replay_id}`;
  const queue = item.queue !== null && `to queue ${item.queue}`;
  return joined(shortId(item), `in ${duration(item.duration_ms)}`, which, item.detail ?? null, queue, replay);
}

function entryDetails(item: Entry): string {
  const { waits_behind: ahead } = item;
  const pending = ahead
    ? `waits for ${shortId({ ...item, ...ahead })}, which is ${ahead.state}`
    : isDue(item)
      ? 'due now'
      : `due ${time(item.due_at)}`;
  const due = item.state === 'pending' && pending;
  const replay = item.replay_id !== null && `replay ${item.replay_id}`;
  return joined(shortId(item), due, counted(item.attempts, 'attempt'), item.last_error, replay);
}

/** Without the source and job, which the heading names: `processing:45`. */
function shortId({ event_id: id, source, job_id: job }: Publication | Entry): string {
  const prefix = `${source}:${job}:`;
  return id.startsWith(prefix) ? id.slice(prefix.length) : id;
}

function replayDetails(item: Extract<StoryItem, { readonly replay: unknown }>['replay']): string {
  const took = item.duration_ms !== null && `in ${duration(item.duration_ms)}`;
  const queue = item.queue !== null && `to queue ${item.queue}`;
  return joined(item.id, `by ${item.created_by}`, queue, took, item.note);
}
