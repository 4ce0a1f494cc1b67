// `tallyhook outbox`: which events wait for an operator, and what is decided about them.

import type { Env } from '../config.ts';
import { UsageError } from '../errors.ts';
import { type Answers, type Items, LISTS } from '../operators/client/index.ts';
import { type Api, openApi } from './api.ts';
import { argumentOf, parse, TEXT } from './arguments.ts';
import { createBar } from './bar.ts';
import { colourOf, COLUMNS } from './columns.ts';
import { nounCommand, type Verb } from './command.ts';
import { filterOptions, filtersOf, readFilters, wordsOf } from './filters.ts';
import { LISTING_OPTIONS, limitOf, printList } from './listing.ts';
import { listHelp, listVerb } from './lists.ts';
import { complain, paint, put, say, toJson } from './output.ts';
import { ago, clean, count, counted, orMore } from './readable.ts';

/** States in which an entry waits for an operator. */
const WAITING = ['returned', 'parked'] as const;
type Waiting = (typeof WAITING)[number];

const FILTERS = filtersOf(LISTS.outbox.filters);
const STATE = LISTS.outbox.filters.state;

const help = `Events that are still to be published, and decisions about those that wait for one.

  outbox                what waits for an operator: returned (no queue received it) or parked (the relay gave up)
  outbox list           all entries and replays' copies, the oldest first
${listHelp('outbox', wordsOf(STATE))}
  outbox returned       those that no queue received
  outbox parked         those that the relay gave up on; later events of their jobs wait behind them
  outbox retry ID       publish one again: an event's id, or an entry's
  outbox retry returned | parked
                        publish all of them again
    --source NAME         only those of this source
  outbox park ID        stop the attempts to publish one; later events of its job wait behind it
  outbox discard ID     never publish one that is returned or parked; the events behind it go on

"retry ID", "park" and "discard" are for events. For the copies of a replay, pause or cancel the replay: see
"tallyhook replays --help".`;

async function overview(args: string[], env: Env): Promise<number> {
  const { values } = parse(args, { ...filterOptions(FILTERS), ...LISTING_OPTIONS });
  const limit = limitOf(values);
  const { state, ...query } = readFilters(FILTERS, values);
  const known = STATE.unwrap().options.find((one) => one === state);
  if (state !== undefined && known === undefined) throw new UsageError(`--state takes ${wordsOf(STATE)}`);
  const { client } = openApi(env);
  const states = known === undefined ? WAITING : [known];
  const counts = await client.outboxCounts(query);
  if (process.stdout.isTTY) await put(`${depth(counts)}\n\n`);
  async function* items(): AsyncGenerator<Items['outbox']> {
    for (const one of states) yield* client.each('outbox', { ...query, state: one, copies: false }, limit);
  }
  // Entries that were not counted may be of these states: then the list itself shows whether there are any.
  const isNone = counts.counts_complete && states.every((one) => counts.counts[one] === 0);
  if (isNone) complain(`nothing is ${states.join(' or ')}`);
  return isNone ? 0 : printList(items(), { columns: COLUMNS.outbox, noun: 'entry', limit });
}

function depth(found: Answers['outboxCounts']): string {
  const { counts, copies, counts_complete: isComplete, oldest_pending_at: oldestAt } = found;
  const part = (state: keyof typeof counts) =>
    paint(counts[state] > 0 ? (colourOf(state) ?? 'bold') : 'dim', `${count(counts[state])} ${state}`);
  const oldest = oldestAt === null ? '' : `, the oldest recorded ${ago(oldestAt)}`;
  const ofReplays = copies === 0 ? '' : `; ${counted(copies, 'copy')} of replays`;
  const live = `${part('pending')}${oldest}; ${part('returned')}; ${part('parked')}`;
  return orMore(`${live}${ofReplays}`, isComplete);
}

function waitingVerb(state: Waiting): Verb {
  const list = listVerb('outbox', 'entry');
  return (args, env) => list(['--state', state, ...args], env);
}

/** Exit code 1 if there was nothing to retry. */
async function retry(args: string[], env: Env): Promise<number> {
  const { values, positionals } = parse(args, { source: TEXT }, 1);
  const what = argumentOf(positionals, 'what to retry: an id, "returned" or "parked"');
  const api = openApi(env);
  const state = WAITING.find((one) => one === what);
  if (state !== undefined) return retryAll(api, state, values.source);
  if (values.source !== undefined) throw new UsageError('--source goes with "returned" or "parked"');
  return decide(api, what, 'retry');
}

/** Each entry that waits now is retried once, even if it is returned again meanwhile. */
async function retryAll({ client, nextKey }: Api, state: Waiting, source?: string): Promise<number> {
  const total = await countWaiting(client, { state, source });
  const bar = createBar({ ...(total !== undefined && { total }), unit: 'events' });
  let done = 0;
  try {
    for await (const { retried } of client.retryAll({ state, ...(source && { source }) }, nextKey)) {
      done += retried;
      bar.update(done);
    }
  } finally {
    bar.stop();
  }
  if (process.stdout.isTTY) say(`${counted(done, 'event')} put back to be published`);
  else say(toJson({ state, retried: done }));
  return done > 0 ? 0 : 1;
}

/** For the bar; undefined if nobody sees one, or if there are more than are counted. */
async function countWaiting(
  client: Api['client'],
  { state, source }: { state: Waiting; source: string | undefined },
): Promise<number | undefined> {
  if (!process.stderr.isTTY) return undefined;
  const { counts, counts_complete: isComplete } = await client.outboxCounts({ source });
  return isComplete ? counts[state] : undefined;
}

const DONE = { retry: 'put back to be published', park: 'parked', discard: 'discarded' } as const;

function decisionVerb(action: keyof typeof DONE): Verb {
  return async (args, env) => {
    const { positionals } = parse(args, {}, 1);
    return decide(openApi(env), argumentOf(positionals, 'the id of an entry or an event'), action);
  };
}

async function decide({ client, nextKey }: Api, id: string, action: keyof typeof DONE): Promise<number> {
  const entry = await client.decide(id, action, nextKey());
  say(process.stdout.isTTY ? `${clean(entry.event_id)} ${DONE[action]}` : toJson(entry));
  return 0;
}

export const outbox = nounCommand('outbox', {
  help,
  verbs: {
    list: listVerb('outbox', 'entry'),
    returned: waitingVerb('returned'),
    parked: waitingVerb('parked'),
    retry,
    park: decisionVerb('park'),
    discard: decisionVerb('discard'),
  },
  otherwise: overview,
});
