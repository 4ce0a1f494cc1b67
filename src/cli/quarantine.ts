// `tallyhook quarantine`: authentic deliveries that were not understood, and a second try with the present schemas. What is
// given up instead: quarantine-discard.ts.

import type { Env } from '../config.ts';
import { UsageError } from '../errors.ts';
import { type Answers, LISTS, RELEASED_AT_ONCE } from '../operators/client/index.ts';
import { type Api, openApi } from './api.ts';
import { argumentOf, FLAG, parse } from './arguments.ts';
import { CONFIRM_OPTIONS, hasSomebody } from './ask.ts';
import { colourOf, COLUMNS } from './columns.ts';
import { nounCommand } from './command.ts';
import { filterHelp, filterOptions, readFilters, wordsOf } from './filters.ts';
import { groupsHelp, groupsVerb } from './groups.ts';
import { printTable } from './listing.ts';
import { listHelp, listVerb } from './lists.ts';
import { type Order, runOrder, takePages, totalOf } from './order.ts';
import { type Io, toJson } from './io.ts';
import { discard, discardHelp, NOTHING, ORDER_FILTERS, type OrderFilter } from './quarantine-discard.ts';
import { clean, count, counted } from './readable.ts';
import type { Column } from './table.ts';

type Release = Answers['release'];

/** Of those that are still not understood. */
const SHOWN_MAX = 20;

const help = `Authentic deliveries that were not understood: they are kept, and not published.

  quarantine list       the newest first
${listHelp('quarantine', `${wordsOf(LISTS.quarantine.filters.state)} (waiting)`)}
  quarantine groups     how many wait for which reason
${groupsHelp('quarantine')}
  quarantine release ID…
                        try to understand these again, at most ${RELEASED_AT_ONCE}, with the present schemas; if that succeeds, they
                        become events
  quarantine release --all
                        all that wait, or with filters some of them; on a terminal it shows them and asks
${filterHelp(ORDER_FILTERS)}
    --dry-run             only count them and show some
    --yes                 do not ask
${discardHelp}

Exit code 1 if one is still not understood, or could not be discarded.`;

async function release(args: string[], env: Env, io: Io): Promise<number> {
  const options = { all: FLAG, ...CONFIRM_OPTIONS, ...filterOptions(ORDER_FILTERS) } as const;
  const { values, positionals: ids } = parse(args, options, RELEASED_AT_ONCE);
  const filter = readFilters(ORDER_FILTERS, values);
  if (values.all) {
    if (ids.length > 0) throw new UsageError('an id and --all exclude each other');
    const order = releaseAll(io, openApi(env, io), filter);
    if (values['dry-run'] === true || (values.yes !== true && hasSomebody(io)))
      return runOrder(io, values, COLUMNS.quarantine, order);
    return order.carryOut(await order.find());
  }
  if (Object.keys(filter).length > 0) throw new UsageError('filters go with --all');
  if (values['dry-run'] === true) throw new UsageError('--dry-run goes with --all');
  const id = argumentOf(ids, 'the id of a delivery, or --all,');
  const api = openApi(env, io);
  if (ids.length > 1) return releasePages(io, api, { which: { ids }, total: ids.length });
  const result = await api.client.release(id, api.nextKey());
  await io.put(`${io.stdout.isTTY ? sentence(io, result) : toJson(result)}\n`);
  return isFailure(result) ? 1 : 0;
}

const FAILURES: readonly string[] = ['still_quarantined', 'wrong_state', 'not_found'];
const isFailure = ({ result }: Release) => FAILURES.includes(result);

const releaseAll = (io: Io, api: Api, filter: OrderFilter): Order<Answers['quarantinePreview']> => ({
  find: () => api.client.tryRelease({ filter }, api.nextKey()),
  noun: 'delivery',
  none: { text: NOTHING, exitCode: 0 },
  question: (amount) => `Release ${amount}?`,
  past: 'released',
  carryOut: (found) =>
    releasePages(io, api, { which: { filter: { ...filter, to: found.to } }, total: totalOf(found) }),
});

async function releasePages(
  io: Io,
  { client, nextKey }: Api,
  { which, total }: { which: Parameters<Api['client']['releaseMany']>[0]; total: number | undefined },
): Promise<number> {
  const results = new Map<string, number>();
  const failures: Release[] = [];
  const take = async ({ items }: Answers['releases']) => {
    for (const item of items) {
      results.set(item.result, (results.get(item.result) ?? 0) + 1);
      if (isFailure(item)) failures.push(item);
      if (!io.stdout.isTTY) await io.putJson(item);
    }
    return items.length;
  };
  const done = await takePages(io, client.releaseMany(which, nextKey), { unit: 'deliveries', total, take });
  await summarize(io, { done, results, failures });
  return failures.length === 0 ? 0 : 1;
}

async function summarize(
  io: Io,
  {
    done,
    results,
    failures,
  }: { done: number; results: ReadonlyMap<string, number>; failures: readonly Release[] },
): Promise<void> {
  const parts = Array.from(results, ([result, number]) => `${count(number)} ${readable(result)}`);
  io.complain(
    done === 0 ? 'nothing waits in quarantine' : `${counted(done, 'delivery')}: ${parts.join(', ')}`,
  );
  if (!io.stdout.isTTY || failures.length === 0) return;
  const shown = failures.slice(0, SHOWN_MAX);
  await io.put('\n');
  await printTable(io, shown, FAILURE_COLUMNS);
  if (shown.length < failures.length) io.complain('and more: see "tallyhook quarantine list"');
}

const readable = (result: string) => result.replaceAll('_', ' ');

function sentence({ paint }: Io, { delivery_id, result, event_id, reason }: Release): string {
  const rest = clean([event_id, reason].filter(Boolean).join(': '));
  return `${paint(colourOf(result) ?? 'bold', readable(result))} ${delivery_id}${rest === '' ? '' : `  ${rest}`}`;
}

export const FAILURE_COLUMNS: readonly Column<Release>[] = [
  { head: 'delivery', text: (item) => item.delivery_id },
  { head: 'reason', text: (item) => item.reason ?? readable(item.result), wrapTo: 40 },
];

export const quarantine = nounCommand('quarantine', {
  help,
  verbs: {
    list: listVerb('quarantine', 'quarantined delivery'),
    groups: groupsVerb('quarantine'),
    release,
    discard,
  },
});
