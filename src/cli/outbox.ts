// `tallyhook outbox`: which events wait for an operator, and what is decided about them.

import type { Env } from '../config.ts';
import { UsageError } from '../errors.ts';
import type { Entry, OutboxCounts } from '../operators/client/index.ts';
import { type Api, nounCommand, onlyWord, openApi } from './api.ts';
import { parse } from './arguments.ts';
import { createBar } from './bar.ts';
import { colourOf, COLUMNS } from './columns.ts';
import { filterOptions, FILTERS_OF, readFilters } from './filters.ts';
import { LISTING_OPTIONS, limitOf, printList } from './listing.ts';
import { listHelp, listVerb } from './lists.ts';
import { complain, paint, put, say, toJson } from './output.ts';
import { ago, clean, count, counted, orMore } from './readable.ts';

type Waiting = 'returned' | 'parked';

const help = `Events that are still to be published, and decisions about those that wait for one.

  outbox                what waits for an operator: returned (no queue was bound) or parked (the relay gave up)
  outbox list           all entries and replays' copies, the oldest first
${listHelp('outbox', 'pending, returned or parked')}
  outbox returned       those that no queue was bound for
  outbox parked         those that the relay gave up on; later events of their jobs wait behind them
  outbox retry ID       publish one again: an event's id, or an entry's
  outbox retry returned | parked
                        publish all of them again
    --source NAME         only those of this source
  outbox park ID        set one aside that is tried again and again; what its job has later waits behind it
  outbox discard ID     give one up for good that is returned or parked; what waits behind it goes on without it

"retry" without returned or parked, "park" and "discard" are for events themselves; copies that a replay made are its
own: see "tallyhook replays --help".`;

async function overview(args: string[], env: Env): Promise<number> {
  const filters = FILTERS_OF.outbox;
  const { values } = parse(args, { ...filterOptions(filters), ...LISTING_OPTIONS });
  const limit = limitOf(values);
  const { state, ...query } = readFilters(filters, values);
  if (state !== undefined && !['pending', 'returned', 'parked'].includes(String(state)))
    throw new UsageError('--state takes pending, returned or parked');
  const { client } = openApi(env);
  const states = state === undefined ? ['returned', 'parked'] : [String(state)];
  const counts = await client.outboxCounts(query);
  if (process.stdout.isTTY) await put(`${depth(counts)}\n\n`);
  async function* items(): AsyncGenerator<Entry> {
    for (const one of states) yield* client.each('outbox', { ...query, state: one, copies: false }, limit);
  }
  // What was not counted may be just of this state: then the list itself says whether there is any.
  const nothing = counts.counts_complete && states.every((one) => counts.counts[one as Waiting] === 0);
  if (nothing) complain(`nothing is ${states.join(' or ')}`);
  return nothing ? 0 : printList(items(), { columns: COLUMNS.outbox, noun: 'entry', limit });
}

function depth({ counts, copies, counts_complete: isComplete, oldest_pending_at }: OutboxCounts): string {
  const part = (state: keyof typeof counts) =>
    paint(counts[state] > 0 ? (colourOf(state) ?? 'bold') : 'dim', `${count(counts[state])} ${state}`);
  const oldest = oldest_pending_at === null ? '' : `, the oldest recorded ${ago(oldest_pending_at)}`;
  const ofReplays = copies === 0 ? '' : `; ${counted(copies, 'copy')} of replays`;
  const live = `${part('pending')}${oldest}; ${part('returned')}; ${part('parked')}`;
  return orMore(`${live}${ofReplays}`, isComplete);
}

function waitingVerb(state: Waiting) {
  const list = listVerb('outbox', 'entry');
  return (args: string[], env: Env) => list(['--state', state, ...args], env);
}

/** Exit code 1 if there was nothing to put back. */
async function retry(args: string[], env: Env): Promise<number> {
  const { values, positionals } = parse(args, { source: { type: 'string' } }, 1);
  const what = onlyWord(positionals, 'what to retry: an id, "returned" or "parked"');
  const api = openApi(env);
  if (what === 'returned' || what === 'parked') return retryAll(api, what, values.source);
  if (values.source !== undefined) throw new UsageError('--source goes with "returned" or "parked"');
  return decide(api, what, 'retry');
}

/** Each that waits now, once: what nobody is bound for is returned again, and not put back anew each time. */
async function retryAll({ client, nextKey }: Api, state: Waiting, source?: string): Promise<number> {
  const total = await countWaiting(client, { state, source });
  const bar = createBar({ ...(total !== undefined && { total }), unit: 'events' });
  const order = { state, ...(source && { source }) };
  let done = 0;
  let cursor: string | undefined;
  try {
    do {
      const page = await client.retrySome({ ...order, ...(cursor && { cursor }) }, nextKey());
      done += page.retried;
      bar.update(done);
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
  } finally {
    bar.stop();
  }
  if (process.stdout.isTTY) say(`${counted(done, 'event')} put back to be published`);
  else say(toJson({ state, retried: done }));
  return done > 0 ? 0 : 1;
}

/** Undefined if there are more than are counted, or nobody watches. */
async function countWaiting(
  client: Api['client'],
  { state, source }: { state: Waiting; source: string | undefined },
): Promise<number | undefined> {
  if (!process.stderr.isTTY) return undefined;
  const { counts, counts_complete: isComplete } = await client.outboxCounts({ source });
  return isComplete ? counts[state] : undefined;
}

function decisionVerb(action: 'discard' | 'park') {
  return (args: string[], env: Env) => {
    const { positionals } = parse(args, {}, 1);
    return decide(openApi(env), onlyWord(positionals, 'the id of an entry or an event'), action);
  };
}

const DONE = { retry: 'put back to be published', park: 'parked', discard: 'discarded' } as const;

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
