// `tallyhook quarantine discard`: deliveries that nobody will release are given up, with a note that says why.

import type { Env } from '../config.ts';
import { UsageError } from '../errors.ts';
import { type Answers, ApiAnswerError, LISTS } from '../operators/client/index.ts';
import { type Api, openApi } from './api.ts';
import { FLAG, parse, TEXT } from './arguments.ts';
import { CONFIRM_OPTIONS, confirm, requireSomebody } from './ask.ts';
import { createBar } from './bar.ts';
import { colourOf, COLUMNS } from './columns.ts';
import { filterOptions, type FilterQuery, filtersOf, readFilters } from './filters.ts';
import { complain, paint, put, putJson, say, toJson } from './output.ts';
import { count, counted, orMore } from './readable.ts';
import { renderTable, terminalWidth } from './table.ts';

const { state: _state, released: _released, ...orderFilters } = LISTS.quarantine.filters;
/** Of the actions on all that wait. */
export const ORDER_FILTERS = filtersOf(orderFilters);
export type OrderFilter = FilterQuery<(typeof ORDER_FILTERS)[number]>;

/** Each is a request of its own. */
const IDS_MAX = 100;

export const discardHelp = `  quarantine discard ID… --note TEXT
                        give up these, at most ${IDS_MAX}, for good: they no longer wait, and cannot be released any more;
                        they stay in "deliveries list", with their bodies, for the usual time. The note says why
  quarantine discard --all --note TEXT
                        all that wait, or some of them, with the filters of "release --all"; it shows them and asks
    --dry-run             only count them and show some
    --yes                 do not ask`;

const OPTIONS = { ...filterOptions(ORDER_FILTERS), ...CONFIRM_OPTIONS, all: FLAG, note: TEXT } as const;

export async function discard(args: string[], env: Env): Promise<number> {
  const { values, positionals: ids } = parse(args, OPTIONS, IDS_MAX);
  const filter = readFilters(ORDER_FILTERS, values);
  const { note, yes: isSure, 'dry-run': isDry } = values;
  if (values.all === true) {
    if (ids.length > 0) throw new UsageError('ids and --all exclude each other');
    if (isDry === true) return showOnly(openApi(env), filter);
    const reason = requireNote(note);
    requireSomebody(values, 'discarded');
    return discardAll(openApi(env), { filter, note: reason, isSure: isSure === true });
  }
  if (Object.keys(filter).length > 0) throw new UsageError('filters go with --all');
  if (isDry === true) throw new UsageError('--dry-run goes with --all');
  if (ids.length === 0) throw new UsageError('the ids of deliveries, or --all, are missing');
  return discardEach(openApi(env), ids, requireNote(note));
}

function requireNote(note: string | undefined): string {
  if (note === undefined) throw new UsageError('--note TEXT is missing: say why you discard them');
  if (note.trim() === '') throw new UsageError('--note TEXT is empty: say why you discard them');
  return note;
}

/** One that cannot be discarded does not keep back the others. Exit code 1 if there was one. */
async function discardEach({ client, nextKey }: Api, ids: readonly string[], note: string): Promise<number> {
  let failures = 0;
  for (const id of ids) {
    try {
      const delivery = await client.discard(id, note, nextKey());
      if (process.stdout.isTTY) say(`${paint(colourOf('discarded') ?? 'bold', 'discarded')} ${id}`);
      else await putJson(delivery);
    } catch (error) {
      if (!(error instanceof ApiAnswerError && [404, 409].includes(error.httpStatus))) throw error;
      complain(`${id}: ${error.message}`);
      failures += 1;
    }
  }
  return failures === 0 ? 0 : 1;
}

async function showOnly({ client, nextKey }: Api, filter: OrderFilter): Promise<number> {
  const found = await client.tryDiscard(filter, nextKey());
  await put(`${process.stdout.isTTY ? preview(found) : toJson(found)}\n`);
  return 0;
}

type Order = { readonly filter: OrderFilter; readonly note: string; readonly isSure: boolean };

/** What comes in after the preview is not discarded: nobody was asked about it. */
async function discardAll({ client, nextKey }: Api, { filter, note, isSure }: Order): Promise<number> {
  const found = await client.tryDiscard(filter, nextKey());
  complain(preview(found));
  if (found.matched === 0 && found.matched_exactly) return 1;
  if (!isSure && !(await confirm(`Discard ${amount(found)} for good?`))) {
    complain('nothing was discarded');
    return 1;
  }
  const bar = createBar({ unit: 'deliveries', ...(found.matched_exactly && { total: found.matched }) });
  let done = 0;
  try {
    const pages = client.discardAll({ filter: { ...filter, to: found.to }, note }, nextKey);
    for await (const { discarded } of pages) {
      done += discarded;
      bar.update(done);
    }
  } finally {
    bar.stop();
  }
  say(process.stdout.isTTY ? `${counted(done, 'delivery')} discarded` : toJson({ discarded: done }));
  return done > 0 ? 0 : 1;
}

const amount = ({ matched, matched_exactly: isExact }: Answers['discardPreview']) =>
  orMore(counted(matched, 'delivery'), isExact);

function preview(found: Answers['discardPreview']): string {
  if (found.sample.length === 0) return 'nothing that matches waits in quarantine';
  const rest = found.matched - found.sample.length;
  const table = renderTable(found.sample, COLUMNS.quarantine, { width: terminalWidth() });
  const more = rest > 0 ? `\n… and ${count(rest)} more` : '';
  return `${amount(found)}, the oldest first:\n\n${table}${more}\n`;
}
