// `tallyhook replay`: has events published again. It counts and shows them first, asks, and watches until the end.

import { UsageError } from '../../base/errors.ts';
import type { Env } from '../../config.ts';
import { parse, whole } from '../../terminal/arguments.ts';
import { CONFIRM_OPTIONS, confirm, requireSomebody } from '../../terminal/ask.ts';
import type { Command } from '../../terminal/command.ts';
import { type Io, toJson } from '../../terminal/io.ts';
import { flag, option, optionHelp } from '../../terminal/options.ts';
import { clean, counted, duration, orMore } from '../../terminal/readable.ts';
import { renderTable, terminalWidth } from '../../terminal/table.ts';
import {
  type Answers,
  REPLAY_EVENT_IDS_MAX,
  REPLAY_RATE_DEFAULT,
  REPLAY_RATE_MAX,
  type ReplayOrder,
  replayEventFilters,
} from '../client/index.ts';
import { openApi } from '../kernel/api.command.ts';
import { COLUMNS } from '../kernel/list/columns.command.ts';
import { filterHelp, filterOptions, readFilters } from '../kernel/list/filters.command.ts';
import { queueNotice } from './contract.ts';
import { printReplay, watchReplay } from './watch.command.ts';

const OPTIONS = {
  queue: option('NAME', 'only to this queue, and not to the exchange'),
  rate: option('N', `at most N copies a second (${REPLAY_RATE_DEFAULT})`),
  note: option('TEXT', 'the reason, which is shown with the replay'),
  ...CONFIRM_OPTIONS,
  detach: flag('do not wait for the end'),
} as const;

const help = `Publishes events again, with the same ids. Subscribers recognize the copies by the header "replay".

  replay EVENT_ID…      these events, at most ${REPLAY_EVENT_IDS_MAX}
  replay --<filter> …   all events that match
${filterHelp(replayEventFilters)}
  with either:
${optionHelp(OPTIONS)}

Exit code 1 if it was paused or cancelled, if some events did not reach the bus, or if there is no such queue.
See also "tallyhook replays --help".`;

async function run(args: string[], env: Env, io: Io): Promise<number> {
  const { values, positionals } = parse(
    args,
    { ...filterOptions(replayEventFilters), ...OPTIONS },
    REPLAY_EVENT_IDS_MAX,
  );
  const filter = readFilters(replayEventFilters, values);
  const order = orderOf(positionals, filter, values);
  requireSomebody(io, values, 'replayed');
  const api = openApi(env, io);
  const found = await api.client.tryReplay(order, api.nextKey());
  const isRefused = found.queue_state === 'missing';
  if (values['dry-run'] === true) {
    if (io.stdout.isTTY) show(io, found, io.say);
    else io.say(toJson(found));
    tellOfQueue(io, found, order);
    return isRefused ? 1 : 0;
  }
  show(io, found, io.complain);
  tellOfQueue(io, found, order);
  if (isRefused || (found.matched === 0 && found.matched_exactly)) return 1;
  if (values.yes !== true && !(await confirm(io, questionOf(found, order)))) {
    io.complain('nothing was replayed');
    return 1;
  }
  const replay = await api.client.createReplay(asShown(order, found), api.nextKey());
  if (values.detach !== true) return watchReplay(io, api, replay);
  printReplay(io, replay);
  return 0;
}

/** What was accepted since it was shown is left alone, since nobody was asked about it. */
const asShown = (
  { filter, ...order }: ReplayOrder,
  { matched_before: to }: Answers['replayPreview'],
): ReplayOrder => (filter === undefined ? order : { ...order, filter: { ...filter, ...(to && { to }) } });

type OrderOptions = {
  readonly queue?: string | undefined;
  readonly rate?: string | undefined;
  readonly note?: string | undefined;
};

function orderOf(
  eventIds: readonly string[],
  filter: NonNullable<ReplayOrder['filter']>,
  { queue, rate, note }: OrderOptions,
): ReplayOrder {
  const isFiltered = Object.keys(filter).length > 0;
  if (isFiltered === eventIds.length > 0) {
    throw new UsageError('replay takes ids of events, or filters: one of the two');
  }
  return {
    ...(isFiltered ? { filter } : { event_ids: eventIds }),
    ...(queue !== undefined && { queue }),
    rate_per_second: whole('--rate', rate, REPLAY_RATE_DEFAULT, { min: 1, max: REPLAY_RATE_MAX }),
    ...(note !== undefined && { note }),
  };
}

function show(
  io: Io,
  { matched, matched_exactly: isExact, sample }: Answers['replayPreview'],
  print: (line: string) => void,
): void {
  const none = isExact
    ? 'no events match'
    : 'so many events are to be looked through that none was found yet';
  const isAll = isExact && matched === sample.length;
  const found = `${orMore(counted(matched, 'event'), isExact)}${isAll ? '' : ', among them'}:`;
  print(matched === 0 ? none : found);
  if (matched > 0)
    print(`\n${renderTable(sample, COLUMNS.events, { width: terminalWidth(io), paint: io.paint })}\n`);
}

function tellOfQueue(io: Io, { queue_state: state }: Answers['replayPreview'], { queue = '' }: ReplayOrder) {
  const notice = queueNotice(clean(queue), state);
  if (notice !== undefined) io.complain(notice);
}

function questionOf(
  { matched, matched_exactly: isExact }: Answers['replayPreview'],
  { queue, rate_per_second: rate = REPLAY_RATE_DEFAULT }: ReplayOrder,
): string {
  const where =
    queue === undefined ? 'the exchange, to all who are bound there' : `the queue ${clean(queue)} alone`;
  const time = duration(Math.max(1, matched / rate) * 1_000);
  const what = orMore(counted(matched, 'event'), isExact);
  return `Publish ${what} again on ${where}, in ${isExact ? 'about' : 'no less than'} ${time}?`;
}

export const replay: Command = { help, run };
