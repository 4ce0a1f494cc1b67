// `tallyhook stats`: how many deliveries and publications there were, and how long they took, a step and source, and in all.

import { UsageError } from '../../base/errors.ts';
import type { Env } from '../../config.ts';
import { parse } from '../../terminal/arguments.ts';
import type { Command } from '../../terminal/command.ts';
import type { Io } from '../../terminal/io.ts';
import { printTable } from '../../terminal/listing.ts';
import { flag, option, optionHelp } from '../../terminal/options.ts';
import { time } from '../../terminal/readable.ts';
import { type Answers, range, source } from '../client/index.ts';
import { openApi } from '../kernel/api.command.ts';
import { filterHelp, filterOptions, readFilters, secondsOf } from '../kernel/list/filters.command.ts';
import { DELIVERIES, hasPublications, PUBLICATIONS, TOTAL, totalRows, WAITS } from './columns.command.ts';

const FILTERS = { ...range, source };

const OPTIONS = {
  step: option('TIME', 'how long one line stands for: 1m, 5m, 1h, 1d (1m)'),
  total: flag('the total alone'),
  waiting: flag('what waited at most in each step instead'),
} as const;

const help = `How many deliveries and publications there were, and how long they took, for each step and source.

  stats                 a line for each step and source; on a terminal, the total of all of them below
${filterHelp(FILTERS)}
${optionHelp(OPTIONS)}

Without --from and --to it is the last hour, in whole steps. The total covers the last 60 minutes, to whole minutes: at
11:14:30 from 10:14 to 11:15, whatever the step. "answer" is the time until a delivery was answered, "lag" that from
an event's acceptance until the broker had confirmed it; both as p50 / p99, accurate to 10 %. An event that still waits is in
neither: --waiting shows how many waited, and how long the oldest one, as while RabbitMQ is away.`;

type Stats = Answers['stats'];

const STEP_MAX_DAYS = 366;

async function run(args: string[], env: Env, io: Io): Promise<number> {
  const { values } = parse(args, { ...filterOptions(FILTERS), ...OPTIONS });
  const { step, total: isTotalOnly, waiting: asksWaits } = values;
  if (asksWaits && (isTotalOnly || 'source' in values)) {
    throw new UsageError('--waiting is of all sources and of steps: it takes neither --source nor --total');
  }
  const { client } = openApi(env, io);
  const stats = await client.stats({
    ...readFilters(FILTERS, values),
    ...(step !== undefined && { step: stepOf(step) }),
  });
  if (asksWaits) return printWaits(io, stats);
  if (stats.items.length === 0) io.complain('nothing came in that time');
  if (io.stdout.isTTY) await printTables(io, stats, isTotalOnly === true);
  else if (isTotalOnly) await io.putJson(stats.total ?? null);
  else for (const item of stats.items) await io.putJson(item);
  return 0;
}

async function printWaits(io: Io, { waits = [] }: Stats): Promise<number> {
  if (waits.length === 0)
    io.complain('nobody looked at what waits in that time, or this token is of some sources alone');
  if (io.stdout.isTTY && waits.length > 0) await printTable(io, waits, WAITS);
  else for (const item of waits) await io.putJson(item);
  return 0;
}

/** Bounds of the API. @throws UsageError */
function stepOf(text: string): number {
  const seconds = secondsOf('--step', text);
  if (seconds >= 60 && seconds % 60 === 0 && seconds <= STEP_MAX_DAYS * 86_400) return seconds;
  throw new UsageError(`--step takes whole minutes, from 1m to ${STEP_MAX_DAYS}d`);
}

async function printTables(io: Io, { items, total }: Stats, isTotalOnly: boolean): Promise<void> {
  if (items.length === 0) return;
  const published = items.filter(hasPublications);
  if (!isTotalOnly) {
    await io.put(`${io.paint('bold', 'deliveries')}\n`);
    await printTable(io, items, DELIVERIES);
    if (published.length > 0) await io.put(`\n${io.paint('bold', 'publications')}\n`);
    if (published.length > 0) await printTable(io, published, PUBLICATIONS);
  }
  if (total === undefined) return; // an older service
  const heading = `total from ${minuteOf(total.from)} to ${minuteOf(total.to)}`;
  await io.put(`${isTotalOnly ? '' : '\n'}${io.paint('bold', heading)}\n`);
  await printTable(io, totalRows(total), TOTAL);
}

/** The total begins and ends with a minute. */
const minuteOf = (rfc3339: string) => time(rfc3339).slice(0, 16);

export const stats: Command = { help, run };
