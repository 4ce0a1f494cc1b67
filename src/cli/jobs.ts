// `tallyhook jobs`: finds jobs, and tells the whole story of one.

import type { Env } from '../config.ts';
import { UsageError } from '../errors.ts';
import type { Items } from '../operators/client/index.ts';
import { openApi } from './api.ts';
import { parse } from './arguments.ts';
import { colourOf } from './columns.ts';
import { nounCommand } from './command.ts';
import { printTable } from './listing.ts';
import { listHelp, listVerb } from './lists.ts';
import { complain, paint, put, putJson } from './output.ts';
import { ago, clean, duration } from './readable.ts';
import { STORY_COLUMNS } from './story.ts';

const STATES = 'processing, completed, failed, or stuck: without an end for too long';

const help = `Finds jobs, and shows the whole story of one.

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
    if (process.stdout.isTTY) {
      if (isFirst) await put(`${heading(job, { source, jobId })}\n\n`);
      if (items.length > 0) await printTable(items, STORY_COLUMNS, { head: isFirst, wrap: true });
    } else {
      if (isFirst) await putJson({ what: 'job', job });
      for (const item of items) await putJson(item);
    }
    isFirst = false;
  }
  if (isFirst) complain('the job has no story');
  return 0;
}

/** Without a job, all its deliveries are in quarantine. */
function heading(
  job: Items['jobs'] | null,
  asked: { readonly source: string; readonly jobId: string },
): string {
  if (job === null)
    return `${paint('bold', clean(asked.jobId))} of ${clean(asked.source)}: no event told of it`;
  const state = paint(colourOf(job.state) ?? 'bold', clean(job.state));
  const { highest_progress: reached } = job;
  const progress = reached === null || job.completed_at !== null ? '' : `, ${reached} % reached`;
  const took =
    job.duration_ms === null
      ? `last heard of ${ago(job.last_seen_at)}`
      : `${duration(job.duration_ms)} from first to last word`;
  return `${paint('bold', clean(job.job_id))} of ${clean(job.source)}: ${state}${progress}, ${took}`;
}

export const jobs = nounCommand('jobs', { help, verbs: { list: listVerb('jobs', 'job'), show } });
