// `tallyhook jobs`: finds jobs, and tells the whole story of one.

import type { Env } from '../config.ts';
import { UsageError } from '../errors.ts';
import type {
  Delivery,
  Entry,
  Event,
  Job,
  Publication,
  StoryItem,
  StoryReplay,
} from '../operators/client/index.ts';
import { nounCommand, openApi } from './api.ts';
import { parse } from './arguments.ts';
import { colourOf, statusOf } from './columns.ts';
import { listHelp, listVerb } from './lists.ts';
import { complain, paint, put, putJson, toJson } from './output.ts';
import { ago, clean, count, counted, duration, time } from './readable.ts';
import { type Column, renderTable, terminalWidth } from './table.ts';

const STATES = 'processing, completed, failed, or stuck: without an end for too long';

const help = `Finds jobs, and tells the whole story of one.

  jobs list             the newest first
${listHelp('jobs', STATES)}
  jobs show [SOURCE] JOB
                        every delivery, event, publication and replay of a job in order; SOURCE is "default" if
                        it is left out`;

async function show(args: string[], env: Env): Promise<number> {
  const { positionals } = parse(args, {}, 2);
  const [first, second] = positionals;
  if (first === undefined)
    throw new UsageError('jobs show takes a source and a job, or a job of the source "default"');
  const [source, jobId] = second === undefined ? ['default', first] : [first, second];
  const { client } = openApi(env);
  let isFirst = true;
  for await (const { job, items } of client.story(source, jobId)) {
    if (isFirst)
      await put(process.stdout.isTTY ? heading(job, { source, jobId }) : `${toJson({ what: 'job', job })}\n`);
    if (process.stdout.isTTY) {
      if (items.length > 0) {
        await put(`${renderTable(items, COLUMNS, { width: terminalWidth(), head: isFirst, wrap: true })}\n`);
      }
    } else for (const item of items) await putJson(item);
    isFirst = false;
  }
  if (isFirst) complain('the job has no story');
  return 0;
}

function heading(job: Job | null, asked: { readonly source: string; readonly jobId: string }): string {
  if (job === null) {
    return `${paint('bold', clean(asked.jobId))} of ${clean(asked.source)}: no event told of it\n\n`;
  }
  const colour = colourOf(job.state) ?? 'bold';
  const { highest_progress: reached } = job;
  const progress = reached === null || job.completed_at !== null ? '' : `, ${reached} % reached`;
  const took =
    job.duration_ms === null
      ? `last heard of ${ago(job.last_seen_at)}`
      : `${duration(job.duration_ms)} from first to last word`;
  return `${paint('bold', clean(job.job_id))} of ${clean(job.source)}: ${paint(colour, clean(job.state))}${progress}, ${took}\n\n`;
}

type Details = { readonly [name: string]: unknown };
type OperatorAction = { readonly action: string; readonly actor: string; readonly subject: string };
type Skip = { readonly event_id: string; readonly reason: string; readonly replay_id: string };

const COLUMNS: readonly Column<StoryItem>[] = [
  { head: 'at (UTC)', text: (item) => time(item.at) },
  {
    head: 'after',
    text: (item) => (item.after_ms === null ? '' : `+${duration(item.after_ms)}`),
    right: true,
  },
  { head: 'what', text: (item) => item.what.replaceAll('_', ' ') },
  { head: 'result', text: (item) => resultOf(item), colour: (item) => colourOf(resultOf(item)) },
  // So wide that an id, and a comma after it, is whole.
  { head: 'details', text: (item) => detailsOf(item), cutTo: 37 },
];

function resultOf(item: StoryItem): string {
  const { delivery, event, publication, entry, operator, replay } = item as Details;
  if (operator) return (operator as OperatorAction).action;
  if (delivery) return (delivery as Delivery).outcome;
  if (event) return (event as Event).kind;
  if (publication) return (publication as Publication).result;
  if (entry) return (entry as Entry).state;
  if (replay) return (replay as StoryReplay).state;
  return '';
}

function detailsOf(item: StoryItem): string {
  const { delivery, event, publication, entry, skip, operator, replay } = item as Details;
  if (delivery) return deliveryDetails(delivery as Delivery);
  if (event) return eventDetails(event as Event);
  if (publication) return publicationDetails(publication as Publication);
  if (entry) return entryDetails(entry as Entry);
  if (replay) return replayDetails(replay as StoryReplay);
  if (operator) return `${(operator as OperatorAction).subject}, by ${(operator as OperatorAction).actor}`;
  if (skip) return `${(skip as Skip).event_id}: ${(skip as Skip).reason}, replay ${(skip as Skip).replay_id}`;
  return '';
}

const joined = (...parts: readonly (string | null | undefined | false)[]) => parts.filter(Boolean).join(', ');

function deliveryDetails(item: Delivery): string {
  return joined(`${item.http_status}`, statusOf(item), item.error_code, item.reason, `id ${item.id}`);
}

function eventDetails(item: Event): string {
  const repeats =
    item.repeats > 0 && `repeated ${item.repeats === 1 ? 'once' : `${count(item.repeats)} times`}`;
  return joined(item.id, item.error_code, item.late && 'late', repeats);
}

function publicationDetails(item: Publication): string {
  const which = item.attempt > 1 && `attempt ${item.attempt}`;
  const replay = item.replay_id !== null && `replay ${item.replay_id}`;
  const queue = item.queue !== null && `to queue ${item.queue}`;
  return joined(shortId(item), `in ${duration(item.duration_ms)}`, which, item.detail, queue, replay);
}

/** Without the source and job, which stand above: `processing:45`. */
function shortId({ event_id: id, source, job_id: job }: Publication | Entry): string {
  const prefix = `${source}:${job}:`;
  return id?.startsWith(prefix) ? id.slice(prefix.length) : (id ?? '');
}

function entryDetails(item: Entry): string {
  const due = item.state === 'pending' && `due ${time(item.due_at)}`;
  const replay = item.replay_id !== null && `replay ${item.replay_id}`;
  return joined(shortId(item), due, counted(item.attempts, 'attempt'), item.last_error, replay);
}

function replayDetails(item: StoryReplay): string {
  const took = item.duration_ms !== null && `in ${duration(item.duration_ms)}`;
  const queue = item.queue !== null && `to queue ${item.queue}`;
  return joined(item.id, `by ${item.created_by}`, queue, took, item.note);
}

export const jobs = nounCommand('jobs', { help, verbs: { list: listVerb('jobs', 'job'), show } });
