// `tallyhook live`: deliveries and publications as they happen, until Ctrl-C. What happens while the connection is lost
// is not shown; the lists have it.

import { setTimeout as sleep } from 'node:timers/promises';
import { parseJson } from '../../base/json/json.ts';
import type { Env } from '../../config.ts';
import { parse } from '../../terminal/arguments.ts';
import type { Command } from '../../terminal/command.ts';
import type { Io } from '../../terminal/io.ts';
import { clean, duration, time } from '../../terminal/readable.ts';
import { type Items, liveFilters, NoAnswerError, type ServerSentEvent, statusOf } from '../client/index.ts';
import { openApi } from '../kernel/api.command.ts';
import { filterHelp, filterOptions, readFilters } from '../kernel/list/filters.command.ts';
import { colourOf } from '../kernel/list/looks.command.ts';

/** `status` has no option here: `--kind` says the same. */
const { status: _status, ...FILTERS } = liveFilters;
const RECONNECT_MS = 1_000;

const help = `Deliveries and publications as they happen, until Ctrl-C; NDJSON when piped.

  live
${filterHelp(FILTERS)}`;

async function run(args: string[], env: Env, io: Io): Promise<number> {
  const { values } = parse(args, filterOptions(FILTERS));
  const query = readFilters(FILTERS, values);
  const { client } = openApi(env, io);
  const stopped = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) io.signals.once(signal, () => stopped.abort());
  while (!stopped.signal.aborted) {
    try {
      if (io.stderr.isTTY) io.complain(io.paint('dim', 'listening'));
      for await (const event of client.live(query, { signal: stopped.signal })) await print(io, event);
    } catch (error) {
      if (stopped.signal.aborted) break;
      // Anything else is an error answer, or the service cannot be reached.
      if (!(error instanceof NoAnswerError && error.code === 'cut')) throw error;
    }
    if (stopped.signal.aborted) break;
    io.complain('the connection was lost: what happened meanwhile is in the lists');
    await sleep(RECONNECT_MS, undefined, { signal: stopped.signal }).catch(() => {});
  }
  return 0;
}

async function print(io: Io, { event, data }: ServerSentEvent): Promise<void> {
  const item = read(data);
  if (!io.stdout.isTTY) return io.putJson({ event, ...item });
  if (event === 'delivery') return io.put(`${deliveryLine(io, item as Items['deliveries'])}\n`);
  if (event === 'publication') return io.put(`${publicationLine(io, item as Items['publications'])}\n`);
  return io.put(`${io.paint('yellow', clean(event))} ${clean(data)}\n`);
}

function read(data: string): object {
  try {
    const found: unknown = parseJson(data);
    return typeof found === 'object' && found !== null ? found : { data };
  } catch {
    return { data };
  }
}

function deliveryLine({ paint }: Io, item: Items['deliveries']): string {
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

function publicationLine({ paint }: Io, item: Items['publications']): string {
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
