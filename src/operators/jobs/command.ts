// `tallyhook jobs`: finds jobs, and tells the whole story of one.

import { UsageError } from '../../base/errors.ts';
import { DEFAULT_SOURCE } from '../../base/text/source-name.ts';
import type { Env } from '../../config.ts';
import { parse } from '../../terminal/arguments.ts';
import { nounCommand } from '../../terminal/command.ts';
import type { Io } from '../../terminal/io.ts';
import { printTable } from '../../terminal/listing.ts';
import { ago, clean, duration, time } from '../../terminal/readable.ts';
import { terminalWidth } from '../../terminal/table.ts';
import { wrap } from '../../terminal/text-width.ts';
import { type Answers, ApiAnswerError, type Items, type OperatorsClient } from '../client/index.ts';
import { whyOf } from '../outbox/contract.ts';
import { openApi } from '../kernel/api.command.ts';
import { listHelp, listVerb } from '../kernel/list/list.command.ts';
import { colourOf } from '../kernel/list/looks.command.ts';
import { STORY_COLUMNS } from './story.command.ts';

const help = `Finds jobs, and shows the whole story of one.

  jobs list             the newest first
${listHelp('jobs')}
  jobs show [SOURCE] JOB
                        every delivery, event, publication and replay of a job in order; SOURCE is "default" if
                        it is left out`;

async function show(args: string[], env: Env, io: Io): Promise<number> {
  const { positionals } = parse(args, {}, 2);
  const [first, second] = positionals;
  if (first === undefined)
    throw new UsageError('jobs show takes a source and a job, or a job of the source "default"');
  const [source, jobId] = second === undefined ? [DEFAULT_SOURCE, first] : [first, second];
  const { client } = openApi(env, io);
  try {
    return await printStory(io, client, { source, jobId });
  } catch (error) {
    if (!(error instanceof ApiAnswerError && ELSEWHERE.has(error.httpStatus))) throw error;
    const sources = await sourcesOf(client, jobId);
    if (sources.length === 0) throw error;
    io.complain(elsewhere({ source, jobId }, sources, error.httpStatus));
    return 1;
  }
}

type Asked = { readonly source: string; readonly jobId: string };

async function printStory(io: Io, client: OperatorsClient, asked: Asked): Promise<number> {
  let isFirst = true;
  for await (const { job, held_back: heldBack, items } of client.story(asked.source, asked.jobId)) {
    if (io.stdout.isTTY) {
      if (isFirst) {
        const lines = [heading(io, job, asked), ...heldBackLines(heldBack)];
        await io.put(`${lines.flatMap((line) => wrap(line, terminalWidth(io))).join('\n')}\n\n`);
      }
      if (items.length > 0) await printTable(io, items, STORY_COLUMNS, { head: isFirst });
    } else {
      if (isFirst) await io.putJson({ what: 'job', job, held_back: heldBack });
      for (const item of items) await io.putJson(item);
    }
    isFirst = false;
  }
  if (isFirst) io.complain('the job has no story');
  return 0;
}

/** The source that was asked for does not have the job, or the token may not read it: then another one may be meant. */
const ELSEWHERE: ReadonlySet<number> = new Set([403, 404]);
const SOURCES_MAX = 20;

/** Of those that the token may read. Without an event there is no job, but there may be deliveries in quarantine. */
async function sourcesOf(client: OperatorsClient, jobId: string): Promise<string[]> {
  const found = new Set<string>();
  const query = { job_id: jobId };
  for await (const { source } of client.each('jobs', query, { max: SOURCES_MAX })) found.add(source);
  for await (const { source } of client.each('quarantine', query, { max: SOURCES_MAX })) found.add(source);
  return [...found].toSorted();
}

function elsewhere({ source, jobId }: Asked, sources: readonly string[], httpStatus: number): string {
  const job = clean(jobId);
  const where = sources.map(clean).join(', ');
  const told =
    httpStatus === 404
      ? `No job ${job} in source ${clean(source)}. It is in: ${where}.`
      : `Your token does not allow source ${clean(source)}. Job ${job} is in: ${where}.`;
  return `${told}\nTry "tallyhook jobs show ${sources.length === 1 ? where : 'SOURCE'} ${job}".`;
}

type HeldBack = Answers['story']['held_back'];

/** What subscribers do not know of. An older service does not tell. */
function heldBackLines(heldBack: HeldBack | undefined): string[] {
  const { entries = [], quarantined = [] } = heldBack ?? {};
  return [
    ...entries.map((entry) => {
      const why = whyOf(entry);
      return `not on the bus: ${clean(entry.event_id)}, ${entry.state} since ${time(entry.recorded_at)}${why === null ? '' : `: ${clean(why)}`}`;
    }),
    ...quarantined.map(
      ({ delivery_id: id, status, reason }) =>
        `in quarantine: ${clean(status ?? 'a delivery')}, ${clean(reason ?? '')}; delivery ${id}`,
    ),
  ];
}

/** Without a job, all its deliveries are in quarantine. */
function heading({ paint }: Io, job: Items['jobs'] | null, asked: Asked): string {
  if (job === null)
    return `${paint('bold', clean(asked.jobId))} of ${clean(asked.source)}: it has no events yet`;
  const state = paint(colourOf(job.state) ?? 'bold', clean(job.state));
  const { highest_progress: reached } = job;
  const progress = reached === null || job.completed_at !== null ? '' : `, ${reached} % reached`;
  const took =
    job.duration_ms === null
      ? `last heard of ${ago(job.last_seen_at)}`
      : `${duration(job.duration_ms)} from the first delivery to the last`;
  return `${paint('bold', clean(job.job_id))} of ${clean(job.source)}: ${state}${progress}, ${took}`;
}

export const jobs = nounCommand('jobs', { help, verbs: { list: listVerb('jobs', 'job'), show } });
