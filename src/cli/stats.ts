// `tallyhook stats`: how many deliveries and publications there were, and how long they took, a step and source.

import type { Env } from '../config.ts';
import type { Answers } from '../operators/client/index.ts';
import { openApi } from './api.ts';
import { parse, TEXT } from './arguments.ts';
import { colourOf } from './columns.ts';
import type { Command } from './command.ts';
import { filterHelp, filterOptions, readFilters, secondsOf } from './filters.ts';
import { printTable } from './listing.ts';
import { complain, putJson } from './output.ts';
import { count, duration, time } from './readable.ts';
import type { Column } from './table.ts';

const FILTERS = ['from', 'to', 'source'] as const;

const help = `How many deliveries and publications there were, and how long they took, a step and source.

  stats
${filterHelp(FILTERS)}
    --step TIME           how long one line stands for: 1m, 5m, 1h, 1d (1m)

Without --from and --to it is the last hour. "answer" is the time until a delivery was answered, "lag" that from an
event's acceptance until the broker had confirmed it; both as p50 / p99, right to 10 %.`;

type Item = Answers['stats']['items'][number];

async function run(args: string[], env: Env): Promise<number> {
  const { values } = parse(args, { ...filterOptions(FILTERS), step: TEXT } as const);
  const { step } = values;
  const { client } = openApi(env);
  const { items } = await client.stats({
    ...readFilters(FILTERS, values),
    ...(step !== undefined && { step: secondsOf('--step', step) }),
  });
  if (items.length === 0) complain('nothing came in that time');
  if (!process.stdout.isTTY) for (const item of items) await putJson(item);
  else if (items.length > 0) await printTable(items, columnsFor(items));
  return 0;
}

function columnsFor(items: readonly Item[]): Column<Item>[] {
  return [
    { head: 'at (UTC)', text: (item) => time(item.at) },
    { head: 'source', text: (item) => item.source },
    ...countColumns(items, (item) => item.deliveries),
    { head: 'answer', text: (item) => range(item.answer_ms), right: true },
    ...countColumns(items, (item) => item.publications),
    { head: 'lag', text: (item) => range(item.lag_ms), right: true },
  ];
}

type Counts = Readonly<Record<string, number>>;

/** A column for each outcome or result that occurred, in the order in which the API names them. */
function countColumns(items: readonly Item[], countsOf: (item: Item) => Counts): Column<Item>[] {
  const occurred = items.flatMap((item) => Object.entries(countsOf(item)).filter(([, number]) => number > 0));
  const names = new Set(occurred.map(([name]) => name));
  return Array.from(names, (name) => ({
    head: name,
    text: (item) => count(countsOf(item)[name] ?? 0),
    colour: (item) => ((countsOf(item)[name] ?? 0) > 0 ? colourOf(name) : 'dim'),
    right: true,
  }));
}

const range = (found: Item['answer_ms']) =>
  found === null ? '' : `${duration(found.p50)} / ${duration(found.p99)}`;

export const stats: Command = { help, run };
