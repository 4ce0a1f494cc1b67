// `tallyhook stats`: how many deliveries and publications there were, and how long they took, a step and source.

import type { Env } from '../config.ts';
import type { Stats } from '../operators/client/index.ts';
import { openApi } from './api.ts';
import { parse } from './arguments.ts';
import { colourOf } from './columns.ts';
import type { Command } from './command.ts';
import { filterHelp, filterOptions, readFilters, secondsOf } from './filters.ts';
import { complain, put, putJson } from './output.ts';
import { count, duration, time } from './readable.ts';
import { type Column, renderTable, terminalWidth } from './table.ts';

const FILTERS = ['from', 'to', 'source'] as const;

const help = `How many deliveries and publications there were, and how long they took, a step and source.

  stats
${filterHelp(FILTERS)}
    --step TIME           how long one line stands for: 1m, 5m, 1h, 1d (1m)

Without --from and --to it is the last hour. "answer" is the time until a delivery was answered, "lag" that from an
event's acceptance until the broker had confirmed it; both as p50 / p99, right to 10 %.`;

type Item = Stats['items'][number];

async function run(args: string[], env: Env): Promise<number> {
  const { values } = parse(args, { ...filterOptions(FILTERS), step: { type: 'string' } } as const);
  const { step } = values;
  const { client } = openApi(env);
  const { items } = await client.stats({
    ...readFilters(FILTERS, values),
    ...(step !== undefined && { step: secondsOf('--step', step) }),
  });
  if (items.length === 0) complain('nothing came in that time');
  if (!process.stdout.isTTY) for (const item of items) await putJson(item);
  else if (items.length > 0)
    await put(`${renderTable(items, columnsFor(items), { width: terminalWidth() })}\n`);
  return 0;
}

/** A column for each outcome and result that occurred, in the order in which the API names them. */
function columnsFor(items: readonly Item[]): Column<Item>[] {
  const namesOf = (read: (item: Item) => Readonly<Record<string, number>>) => [
    ...new Set(
      items.flatMap((item) => Object.entries(read(item)).flatMap(([name, n]) => (n > 0 ? [name] : []))),
    ),
  ];
  const counts = (read: (item: Item) => Readonly<Record<string, number>>) =>
    namesOf(read).map(
      (name): Column<Item> => ({
        head: name,
        text: (item) => count(read(item)[name] ?? 0),
        colour: (item) => ((read(item)[name] ?? 0) > 0 ? colourOf(name) : 'dim'),
        right: true,
      }),
    );
  return [
    { head: 'at (UTC)', text: (item) => time(item.at) },
    { head: 'source', text: (item) => item.source },
    ...counts((item) => item.deliveries),
    { head: 'answer', text: (item) => range(item.answer_ms), right: true },
    ...counts((item) => item.publications),
    { head: 'lag', text: (item) => range(item.lag_ms), right: true },
  ];
}

const range = (found: Item['answer_ms']) =>
  found === null ? '' : `${duration(found.p50)} / ${duration(found.p99)}`;

export const stats: Command = { help, run };
