// `tallyhook live`: deliveries and publications as they happen, until Ctrl-C. What happens while the connection is lost
// is not shown; the lists have it.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Env } from '../config.ts';
import { parseJson } from '../json.ts';
import { type Items, liveFilters, NoAnswerError, type ServerSentEvent } from '../operators/client/index.ts';
import { openApi } from './api.ts';
import { parse } from './arguments.ts';
import { colourOf, statusOf } from './columns.ts';
import type { Command } from './command.ts';
import { filterHelp, filterOptions, filtersOf, readFilters } from './filters.ts';
import { complain, paint, put, putJson } from './output.ts';
import { clean, duration, time } from './readable.ts';

/** `status` has no option here: `--kind` says the same. */
const FILTERS = filtersOf(liveFilters).filter((filter) => filter !== 'status');
const RECONNECT_MS = 1_000;

const help = `Deliveries and publications as they happen, until Ctrl-C; NDJSON when piped.

  live
${filterHelp(FILTERS)}`;

async function run(args: string[], env: Env): Promise<number> {
  const { values } = parse(args, filterOptions(FILTERS));
  const query = readFilters(FILTERS, values);
  const { client } = openApi(env);
  const stopped = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopped.abort());
  while (!stopped.signal.aborted) {
    try {
      if (process.stderr.isTTY) complain(paint('dim', 'listening'));
      for await (const event of client.live(query, { signal: stopped.signal })) await print(event);
    } catch (error) {
      if (stopped.signal.aborted) break;
      // Anything else is an error answer, or the service cannot be reached.
      if (!(error instanceof NoAnswerError && error.code === 'cut')) throw error;
    }
    if (stopped.signal.aborted) break;
    complain('the connection was lost: what happened meanwhile is in the lists');
    await sleep(RECONNECT_MS, undefined, { signal: stopped.signal }).catch(() => {});
  }
  return 0;
}

async function print({ event, data }: ServerSentEvent): Promise<void> {
  const item = read(data);
  if (!process.stdout.isTTY) return putJson({ event, ...item });
  if (event === 'delivery') return put(`${deliveryLine(item as Items['deliveries'])}\n`);
  if (event === 'publication') return put(`${publicationLine(item as Items['publications'])}\n`);
  return put(`${paint('yellow', clean(event))} ${clean(data)}\n`);
}

function read(data: string): object {
  try {
    const found: unknown = parseJson(data);
    return typeof found === 'object' && found !== null ? found : { data };
  } catch {
    return { data };
  }
}

function deliveryLine(item: Items['deliveries']): string {
  const { received_at: at, source, outcome, job_id: job, error_code: error, reason } = item;
  return [
    paint('dim', time(at)),
    '▶',
    paint(colourOf(outcome) ?? 'bold', clean(outcome).padEnd(12)),
    clean(source),
    paint('bold', clean(job)),
    clean(statusOf(item)),
    clean(error),
    clean(reason),
  ]
    .filter((part) => part !== '')
    .join('  ');
}

function publicationLine(item: Items['publications']): string {
  const { published_at: at, result, event_id: id, duration_ms: took, detail, replay_id: replay } = item;
  return [
    paint('dim', time(at)),
    '◀',
    paint(colourOf(result) ?? 'bold', clean(result).padEnd(12)),
    paint('bold', clean(id)),
    duration(took),
    clean(detail),
    replay ? `replay ${replay}` : '',
  ]
    .filter((part) => part !== '')
    .join('  ');
}

export const live: Command = { help, run };
