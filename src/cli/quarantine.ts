// `tallyhook quarantine`: authentic deliveries that were not understood, and a second try with the present schemas. What is
// given up instead: quarantine-discard.ts.

import type { Env } from '../config.ts';
import { UsageError } from '../errors.ts';
import { type Answers, type ListQuery, LISTS } from '../operators/client/index.ts';
import { type Api, openApi } from './api.ts';
import { argumentOf, FLAG, parse } from './arguments.ts';
import { createBar } from './bar.ts';
import { colourOf } from './columns.ts';
import { nounCommand } from './command.ts';
import { filterHelp, filterOptions, readFilters, wordsOf } from './filters.ts';
import { printTable } from './listing.ts';
import { listHelp, listVerb } from './lists.ts';
import { complain, paint, put, putJson, toJson } from './output.ts';
import { discard, discardHelp, ORDER_FILTERS, type OrderFilter } from './quarantine-discard.ts';
import { clean, count, counted } from './readable.ts';
import type { Column } from './table.ts';

type Release = Answers['release'];

/** Counting for the bar must not take longer than the release itself. */
const COUNTED_MAX = 5_000;
/** Of those that are still not understood. */
const SHOWN_MAX = 20;

const help = `Authentic deliveries that were not understood: they are kept, and not published.

  quarantine list       the newest first
${listHelp('quarantine', `${wordsOf(LISTS.quarantine.filters.state)} (waiting)`)}
  quarantine release ID
                        try to understand it again, with the present schemas; if that succeeds, it becomes an event
  quarantine release --all
                        all that wait, or with filters some of them
${filterHelp(ORDER_FILTERS)}
${discardHelp}

Exit code 1 if one is still not understood, or could not be discarded.`;

async function release(args: string[], env: Env): Promise<number> {
  const options = { all: FLAG, ...filterOptions(ORDER_FILTERS) } as const;
  const { values, positionals } = parse(args, options, 1);
  const filter = readFilters(ORDER_FILTERS, values);
  if (values.all) {
    if (positionals.length > 0) throw new UsageError('an id and --all exclude each other');
    return releaseAll(openApi(env), filter);
  }
  if (Object.keys(filter).length > 0) throw new UsageError('filters go with --all');
  const id = argumentOf(positionals, 'the id of a delivery, or --all,');
  const { client, nextKey } = openApi(env);
  const result = await client.release(id, nextKey());
  await put(`${process.stdout.isTTY ? sentence(result) : toJson(result)}\n`);
  return isFailure(result) ? 1 : 0;
}

const isFailure = ({ result }: Release) => result === 'still_quarantined';

async function releaseAll({ client, nextKey }: Api, filter: OrderFilter): Promise<number> {
  const total = await countWaiting(client, filter);
  const bar = createBar({ unit: 'deliveries', ...(total !== undefined && { total }) });
  const results = new Map<string, number>();
  const failures: Release[] = [];
  let done = 0;
  try {
    for await (const { items } of client.releaseAll(filter, nextKey)) {
      for (const item of items) {
        results.set(item.result, (results.get(item.result) ?? 0) + 1);
        if (isFailure(item)) failures.push(item);
        if (!process.stdout.isTTY) await putJson(item);
      }
      done += items.length;
      bar.update(done);
    }
  } finally {
    bar.stop();
  }
  await summarize(done, results, failures);
  return failures.length === 0 ? 0 : 1;
}

/** For the bar; undefined if nobody sees one, or if there are too many to count. */
async function countWaiting(
  client: Api['client'],
  filter: ListQuery<'quarantine'>,
): Promise<number | undefined> {
  if (!process.stderr.isTTY) return undefined;
  let found = 0;
  for await (const _ of client.each('quarantine', filter, { max: COUNTED_MAX })) found += 1;
  return found < COUNTED_MAX ? found : undefined;
}

async function summarize(
  done: number,
  results: ReadonlyMap<string, number>,
  failures: readonly Release[],
): Promise<void> {
  const parts = Array.from(results, ([result, number]) => `${count(number)} ${readable(result)}`);
  complain(done === 0 ? 'nothing waits in quarantine' : `${counted(done, 'delivery')}: ${parts.join(', ')}`);
  if (!process.stdout.isTTY || failures.length === 0) return;
  const shown = failures.slice(0, SHOWN_MAX);
  await put('\n');
  await printTable(shown, FAILURE_COLUMNS);
  if (shown.length < failures.length) complain('and more: see "tallyhook quarantine list"');
}

const readable = (result: string) => result.replaceAll('_', ' ');

function sentence({ delivery_id, result, event_id, reason }: Release): string {
  const rest = clean([event_id, reason].filter(Boolean).join(': '));
  return `${paint(colourOf(result) ?? 'bold', readable(result))} ${delivery_id}${rest === '' ? '' : `  ${rest}`}`;
}

export const FAILURE_COLUMNS: readonly Column<Release>[] = [
  { head: 'delivery', text: (item) => item.delivery_id },
  { head: 'reason', text: (item) => item.reason, wrapTo: 40 },
];

export const quarantine = nounCommand('quarantine', {
  help,
  verbs: { list: listVerb('quarantine', 'quarantined delivery'), release, discard },
});
