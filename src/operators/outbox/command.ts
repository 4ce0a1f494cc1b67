// `tallyhook outbox`: which events wait for an operator, and what is decided about them.

import { UsageError } from '../../base/errors.ts';
import type { Env } from '../../config.ts';
import { parse } from '../../terminal/arguments.ts';
import { CONFIRM_OPTIONS } from '../../terminal/ask.ts';
import { nounCommand, type Verb } from '../../terminal/command.ts';
import type { Io } from '../../terminal/io.ts';
import { LISTING_OPTIONS, limitOf, printList } from '../../terminal/listing.ts';
import { optionHelp } from '../../terminal/options.ts';
import { ago, count, counted, orMore } from '../../terminal/readable.ts';
import { type Answers, DECIDED_AT_ONCE, type Items, LISTS, PARKABLE, WAITING } from '../client/index.ts';
import { openApi } from '../kernel/api.command.ts';
import { groupsHelp, groupsVerb } from '../kernel/group/group.command.ts';
import { COLUMNS } from '../kernel/list/columns.command.ts';
import { filterHelp, filterOptions, orOf, readFilters, wordsOf } from '../kernel/list/filters.command.ts';
import { listHelp, listVerb } from '../kernel/list/list.command.ts';
import { colourOf } from '../kernel/list/looks.command.ts';
import { type OrderVerb, orderVerb } from '../kernel/order/verb.command.ts';

const FILTERS = LISTS.outbox.filters;

/** Only copies of replays have a queue, and nobody decides on these. */
const { copies: _copies, queue: _queue, ...ORDER_FILTERS } = FILTERS;

/** Counts are of all states, of a source or of all. */
const COUNTED = { source: FILTERS.source };

const help = `Events that are still to be published, and decisions about those that wait for one.

  outbox                what waits for an operator: returned (no queue received it) or parked (the relay gave up);
                        how much is pending is said beside it, in a pipe on standard error
  outbox counts         how many are pending, returned and parked, and since when the oldest one is pending;
                        in a pipe one JSON object
${filterHelp(COUNTED)}
  outbox list           all entries and replays' copies, the oldest first
${listHelp('outbox')}
  outbox returned       those that no queue received
  outbox parked         those that the relay gave up on; later events of their jobs wait behind them
  outbox groups         how much there is for which reason
${groupsHelp('outbox')}
  outbox retry ID…      publish these again, at most ${DECIDED_AT_ONCE}: events' ids, or entries'
  outbox retry returned | parked
                        publish all of them again, without a question. One that was nacked
                        may be in some queues already: each of up to five attempts can
                        bring these another copy
    --source NAME         only those of this source
  outbox retry --all --state STATE
                        publish again all that match; it shows them and asks
${filterHelp(ORDER_FILTERS, { state: orOf(WAITING) })}
${optionHelp(CONFIRM_OPTIONS)}
  outbox park ID…       stop the attempts to publish these; later events of their jobs wait behind them
  outbox park --all --state STATE
                        all that match, ${orOf(PARKABLE)}, with the options of "retry --all"
  outbox discard ID…    never publish these, which are returned or parked; the events behind them go on
  outbox discard --all --state STATE
                        all that match, with the options of "retry --all"

"retry", "park" and "discard" are for events. For the copies of a replay, pause or cancel the replay: see
"tallyhook replays --help".`;

async function overview(args: string[], env: Env, io: Io): Promise<number> {
  const { values } = parse(args, { ...filterOptions(FILTERS), ...LISTING_OPTIONS });
  const limit = limitOf(values);
  const { state, ...query } = readFilters(FILTERS, values);
  const known = FILTERS.state.unwrap().options.find((one) => one === state);
  if (state !== undefined && known === undefined)
    throw new UsageError(`--state takes ${wordsOf(FILTERS.state)}`);
  const { client } = openApi(env, io);
  const states = known === undefined ? WAITING : [known];
  const counts = await client.outboxCounts(query);
  if (io.stdout.isTTY) await io.put(`${depth(io, counts)}\n\n`);
  else if (counts.counts.pending > 0) io.complain(pendingLine(counts));
  if (counts.counts.pending > 0) await complainOfBroker(client, io);
  async function* items(): AsyncGenerator<Items['outbox']> {
    for (const one of states) yield* client.each('outbox', { ...query, state: one, copies: false }, limit);
  }
  // Entries that were not counted may be of these states: then the list itself shows whether there are any.
  const isNone = counts.counts_complete && states.every((one) => counts.counts[one] === 0);
  if (isNone) io.complain(`nothing is ${states.join(' or ')}`);
  return isNone ? 0 : printList(io, items(), { columns: COLUMNS.outbox, noun: 'entry', limit });
}

/** What is pending has no reason of its own then. Not told to tokens that may not see it. */
async function complainOfBroker({ conditions }: ReturnType<typeof openApi>['client'], io: Io): Promise<void> {
  const { items } = await conditions().catch(() => ({ items: [] as Answers['conditions']['items'] }));
  const away = items.find(({ name, is_so: isSo }) => name === 'broker-away' && isSo === true);
  if (away !== undefined)
    io.complain(`${away.summary} What is pending waits for RabbitMQ, and goes on by itself.`);
}

const ageOf = ({ oldest_pending_at: oldestAt }: Answers['outboxCounts']) =>
  oldestAt === null ? '' : `, the oldest recorded ${ago(oldestAt)}`;

/** Where nobody sees the counts: an outbox from which nothing waits for a decision may be far behind all the same. */
const pendingLine = (found: Answers['outboxCounts']) =>
  orMore(`${counted(found.counts.pending, 'event')} pending${ageOf(found)}`, found.counts_complete);

function depth({ paint }: Io, found: Answers['outboxCounts']): string {
  const { counts, copies, counts_complete: isComplete } = found;
  const part = (state: keyof typeof counts) =>
    paint(counts[state] > 0 ? (colourOf(state) ?? 'bold') : 'dim', `${count(counts[state])} ${state}`);
  const ofReplays = copies === 0 ? '' : `; ${counted(copies, 'copy')} of replays`;
  const live = `${part('pending')}${ageOf(found)}; ${part('returned')}; ${part('parked')}`;
  return orMore(`${live}${ofReplays}`, isComplete);
}

/** For scripts: what waits, of which nothing else may be told. */
async function countsVerb(args: string[], env: Env, io: Io): Promise<number> {
  const { values } = parse(args, filterOptions(COUNTED));
  const found = await openApi(env, io).client.outboxCounts(readFilters(COUNTED, values));
  if (io.stdout.isTTY) await io.put(`${depth(io, found)}\n`);
  else await io.putJson(found);
  return 0;
}

function waitingVerb(state: (typeof WAITING)[number]): Verb {
  const list = listVerb('outbox', 'entry');
  return (args, env, io) => list(['--state', state, ...args], env, io);
}

const ofEntries = {
  noun: 'event',
  thing: 'entry in the outbox',
  units: 'events',
  columns: COLUMNS.outbox,
  idsMax: DECIDED_AT_ONCE,
  filters: ORDER_FILTERS,
  states: WAITING,
  none: { text: 'nothing that matches waits in the outbox', exitCode: 1 },
} as const satisfies Partial<OrderVerb<'outbox/retry'>>;

const retryMatching = orderVerb({
  ...ofEntries,
  name: 'outbox/retry',
  past: 'retried',
  done: 'put back to be published',
  missing: 'what to retry (ids, "returned", "parked" or --all)',
  misplaced: '--source goes with "returned" or "parked", and every filter with --all',
  question: (amount) => `Publish ${amount} again?`,
});

/** `retry returned`: all that are so, without a question. */
const retry: Verb = async ([first = '', ...rest], env, io) => {
  if (!WAITING.some((state) => state === first))
    return retryMatching(first === '' ? [] : [first, ...rest], env, io);
  const { values } = parse(rest, filterOptions(ORDER_FILTERS));
  const { source, ...others } = values;
  if (Object.keys(others).length > 0) throw new UsageError(`only --source goes with "${first}"`);
  const ofSource = source === undefined ? [] : [`--source=${source}`];
  return retryMatching(['--all', '--state', first, '--yes', ...ofSource], env, io);
};

const park = orderVerb({
  ...ofEntries,
  name: 'outbox/park',
  states: PARKABLE,
  past: 'parked',
  missing: 'what to park (ids or --all)',
  question: (amount) => `Park ${amount}?`,
});

const discard = orderVerb({
  ...ofEntries,
  name: 'outbox/discard',
  past: 'discarded',
  missing: 'what to discard (ids or --all)',
  question: (amount) => `Discard ${amount} for good?`,
});

export const outbox = nounCommand('outbox', {
  help,
  verbs: {
    list: listVerb('outbox', 'entry'),
    counts: countsVerb,
    returned: waitingVerb('returned'),
    parked: waitingVerb('parked'),
    groups: groupsVerb('outbox'),
    retry,
    park,
    discard,
  },
  otherwise: overview,
});
