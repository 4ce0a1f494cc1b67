// `tallyhook outbox`: which events wait for an operator, and what is decided about them.

import type { Env } from '../config.ts';
import { UsageError } from '../errors.ts';
import { type Answers, type Items, LISTS } from '../operators/client/index.ts';
import { openApi } from './api.ts';
import { argumentOf, parse } from './arguments.ts';
import { colourOf, COLUMNS } from './columns.ts';
import { nounCommand, type Verb } from './command.ts';
import { filterOptions, filtersOf, readFilters, wordsOf } from './filters.ts';
import { groupsHelp, groupsVerb } from './groups.ts';
import { LISTING_OPTIONS, limitOf, printList } from './listing.ts';
import { listHelp, listVerb } from './lists.ts';
import {
  decideOne,
  decisionsHelp,
  discardVerb,
  retryVerb,
  WAITING,
  type Waiting,
} from './outbox-decisions.ts';
import type { Io } from './io.ts';
import { ago, count, counted, orMore } from './readable.ts';

const FILTERS = filtersOf(LISTS.outbox.filters);
const STATE = LISTS.outbox.filters.state;

const help = `Events that are still to be published, and decisions about those that wait for one.

  outbox                what waits for an operator: returned (no queue received it) or parked (the relay gave up)
  outbox list           all entries and replays' copies, the oldest first
${listHelp('outbox', wordsOf(STATE))}
  outbox returned       those that no queue received
  outbox parked         those that the relay gave up on; later events of their jobs wait behind them
  outbox groups         how much there is for which reason
${groupsHelp('outbox')}
${decisionsHelp}

"retry", "park" and "discard" are for events. For the copies of a replay, pause or cancel the replay: see
"tallyhook replays --help".`;

async function overview(args: string[], env: Env, io: Io): Promise<number> {
  const { values } = parse(args, { ...filterOptions(FILTERS), ...LISTING_OPTIONS });
  const limit = limitOf(values);
  const { state, ...query } = readFilters(FILTERS, values);
  const known = STATE.unwrap().options.find((one) => one === state);
  if (state !== undefined && known === undefined) throw new UsageError(`--state takes ${wordsOf(STATE)}`);
  const { client } = openApi(env, io);
  const states = known === undefined ? WAITING : [known];
  const counts = await client.outboxCounts(query);
  if (io.stdout.isTTY) await io.put(`${depth(io, counts)}\n\n`);
  async function* items(): AsyncGenerator<Items['outbox']> {
    for (const one of states) yield* client.each('outbox', { ...query, state: one, copies: false }, limit);
  }
  // Entries that were not counted may be of these states: then the list itself shows whether there are any.
  const isNone = counts.counts_complete && states.every((one) => counts.counts[one] === 0);
  if (isNone) io.complain(`nothing is ${states.join(' or ')}`);
  return isNone ? 0 : printList(io, items(), { columns: COLUMNS.outbox, noun: 'entry', limit });
}

function depth({ paint }: Io, found: Answers['outboxCounts']): string {
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
  return (args, env, io) => list(['--state', state, ...args], env, io);
}

const parkVerb: Verb = async (args, env, io) => {
  const { positionals } = parse(args, {}, 1);
  const id = argumentOf(positionals, 'the id of an entry or an event');
  return decideOne(io, openApi(env, io), { id, action: 'park' });
};

export const outbox = nounCommand('outbox', {
  help,
  verbs: {
    list: listVerb('outbox', 'entry'),
    returned: waitingVerb('returned'),
    parked: waitingVerb('parked'),
    groups: groupsVerb('outbox'),
    retry: retryVerb,
    park: parkVerb,
    discard: discardVerb,
  },
  otherwise: overview,
});
