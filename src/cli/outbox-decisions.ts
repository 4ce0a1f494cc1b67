// `tallyhook outbox retry` and `outbox discard`: some events by their ids, or all that match.

import type { Env } from '../config.ts';
import { UsageError } from '../errors.ts';
import { type Answers, DECIDED_AT_ONCE, LISTS } from '../operators/client/index.ts';
import { type Api, openApi } from './api.ts';
import { FLAG, parse, TEXT } from './arguments.ts';
import { CONFIRM_OPTIONS, requireSomebody } from './ask.ts';
import { COLUMNS } from './columns.ts';
import { filterHelp, filterOptions, type FilterQuery, filtersOf, orOf, readFilters } from './filters.ts';
import { type Order, runOrder, takePages, totalOf } from './order.ts';
import { type Io, toJson } from './io.ts';
import { clean, counted } from './readable.ts';

/** States in which an entry waits for an operator. */
export const WAITING = ['returned', 'parked'] as const;
export type Waiting = (typeof WAITING)[number];

/** Only copies of replays have a queue, and nobody decides on these. */
const { copies: _copies, queue: _queue, ...orderFilters } = LISTS.outbox.filters;
const ORDER_FILTERS = filtersOf(orderFilters);

const DONE = { retry: 'put back to be published', park: 'parked', discard: 'discarded' } as const;

const WORDS = {
  retry: {
    past: 'retried',
    missing: 'what to retry (ids, "returned", "parked" or --all)',
    misplaced: '--source goes with "returned" or "parked", and every filter with --all',
    question: (amount: string) => `Publish ${amount} again?`,
  },
  discard: {
    past: 'discarded',
    missing: 'what to discard (ids or --all)',
    misplaced: 'filters go with --all',
    question: (amount: string) => `Discard ${amount} for good?`,
  },
} as const;
type Action = keyof typeof WORDS;

export const decisionsHelp = `  outbox retry ID…      publish these again, at most ${DECIDED_AT_ONCE}: events' ids, or entries'
  outbox retry returned | parked
                        publish all of them again, without a question. One that was nacked
                        may be in some queues already: each of up to five attempts can
                        bring these another copy
    --source NAME         only those of this source
  outbox retry --all --state STATE
                        publish again all that match; it shows them and asks
${filterHelp(ORDER_FILTERS, orOf(WAITING))}
    --dry-run             only count them and show some
    --yes                 do not ask
  outbox park ID        stop the attempts to publish one; later events of its job wait behind it
  outbox discard ID…    never publish these, which are returned or parked; the events behind them go on
  outbox discard --all --state STATE
                        all that match, with the options of "retry --all"`;

const OPTIONS = { ...filterOptions(ORDER_FILTERS), ...CONFIRM_OPTIONS, all: FLAG, source: TEXT } as const;

type Values = ReturnType<typeof parse<typeof OPTIONS>>['values'];

/** Exit code 1 if there was nothing to retry, or if one could not be. */
export async function retryVerb(args: string[], env: Env, io: Io): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS, DECIDED_AT_ONCE);
  const state = positionals.length === 1 ? WAITING.find((one) => one === positionals[0]) : undefined;
  if (state === undefined) return decisionOn('retry', positionals, { values, env, io });
  const { source, ...others } = values;
  if (Object.keys(others).length > 0) throw new UsageError(`only --source goes with "${state}"`);
  return retryState(io, openApi(env, io), { state, source });
}

/** Exit code 1 if there was nothing to discard, or if one could not be. */
export async function discardVerb(args: string[], env: Env, io: Io): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS, DECIDED_AT_ONCE);
  return decisionOn('discard', positionals, { values, env, io });
}

async function decisionOn(
  action: Action,
  ids: readonly string[],
  { values, env, io }: { values: Values; env: Env; io: Io },
): Promise<number> {
  const { past, missing, misplaced } = WORDS[action];
  const filter = readFilters(ORDER_FILTERS, values);
  if (values.all === true) {
    if (ids.length > 0) throw new UsageError('ids and --all exclude each other');
    const state = WAITING.find((one) => one === filter.state);
    if (state === undefined) throw new UsageError(`--all goes with --state, which takes ${orOf(WAITING)}`);
    requireSomebody(io, values, past);
    return runOrder(io, values, COLUMNS.outbox, orderOf(io, openApi(env, io), action, { ...filter, state }));
  }
  if (Object.keys(filter).length > 0) throw new UsageError(misplaced);
  if (values['dry-run'] === true) throw new UsageError('--dry-run goes with --all');
  const [id] = ids;
  if (id === undefined) throw new UsageError(`${missing} is missing`);
  const api = openApi(env, io);
  return ids.length === 1 ? decideOne(io, api, { id, action }) : decideEach(io, api, { ids, action });
}

type Filter = FilterQuery<(typeof ORDER_FILTERS)[number]> & { readonly state: Waiting };

const orderOf = (io: Io, api: Api, action: Action, filter: Filter): Order<Answers['outboxPreview']> => ({
  find: () => api.client.tryDecide(action, { filter }, api.nextKey()),
  noun: 'event',
  none: { text: 'nothing that matches waits in the outbox', exitCode: 1 },
  question: WORDS[action].question,
  past: WORDS[action].past,
  carryOut: async (found) => {
    const pages = pagesOf(api, action, { filter: { ...filter, up_to: found.up_to } });
    const done = await takePages(io, pages, {
      unit: 'events',
      total: totalOf(found),
      take: ({ done: some }) => some,
    });
    if (io.stdout.isTTY) io.say(`${counted(done, 'event')} ${DONE[action]}`);
    else io.say(toJson({ [WORDS[action].past]: done }));
    return done > 0 ? 0 : 1;
  },
});

type Item = NonNullable<Answers['retried']['items']>[number];
type Page = { readonly done: number; readonly items: readonly Item[] };

/** What was done, page by page. */
async function* pagesOf(
  { client, nextKey }: Api,
  action: Action,
  which: Parameters<Api['client']['discardEntries']>[0],
): AsyncGenerator<Page, void, undefined> {
  if (action === 'retry') {
    for await (const { retried: done, items = [] } of client.retryMany(which, nextKey)) yield { done, items };
  } else {
    for await (const { discarded: done, items = [] } of client.discardEntries(which, nextKey))
      yield { done, items };
  }
}

/** One that cannot be decided on does not keep back the others. Exit code 1 if there was one. */
async function decideEach(
  io: Io,
  api: Api,
  { ids, action }: { ids: readonly string[]; action: Action },
): Promise<number> {
  let failures = 0;
  for await (const { items } of pagesOf(api, action, { ids: [...ids] })) {
    for (const item of items) {
      if (item.result === 'wrong_state' || item.result === 'not_found') {
        io.complain(`${item.id}: ${item.reason ?? 'there is no such entry in the outbox'}`);
        failures += 1;
      } else if (io.stdout.isTTY) io.say(`${clean(item.event_id)} ${DONE[action]}`);
      else await io.putJson(item);
    }
  }
  return failures === 0 ? 0 : 1;
}

/** Each entry that waits now is retried once, even if it is returned again meanwhile. */
async function retryState(
  io: Io,
  api: Api,
  { state, source }: { state: Waiting; source: string | undefined },
): Promise<number> {
  const { client, nextKey } = api;
  const total = await countWaiting(io, client, { state, source });
  const pages = client.retryMany({ state, ...(source && { source }) }, nextKey);
  const done = await takePages(io, pages, { unit: 'events', total, take: ({ retried }) => retried });
  if (io.stdout.isTTY) io.say(`${counted(done, 'event')} ${DONE.retry}`);
  else io.say(toJson({ state, retried: done }));
  return done > 0 ? 0 : 1;
}

/** For the bar; undefined if nobody sees one, or if there are more than are counted. */
async function countWaiting(
  io: Io,
  client: Api['client'],
  { state, source }: { state: Waiting; source: string | undefined },
): Promise<number | undefined> {
  if (!io.stderr.isTTY) return undefined;
  const { counts, counts_complete: isComplete } = await client.outboxCounts({ source });
  return isComplete ? counts[state] : undefined;
}

export async function decideOne(
  io: Io,
  { client, nextKey }: Api,
  { id, action }: { id: string; action: keyof typeof DONE },
): Promise<number> {
  const entry = await client.decide(id, action, nextKey());
  io.say(io.stdout.isTTY ? `${clean(entry.event_id)} ${DONE[action]}` : toJson(entry));
  return 0;
}
