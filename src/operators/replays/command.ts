// `tallyhook replays`: what was replayed, what is being replayed, and how to stop it.

import type { Env } from '../../config.ts';
import { argumentOf, parse } from '../../terminal/arguments.ts';
import { nounCommand, type Verb } from '../../terminal/command.ts';
import type { Io } from '../../terminal/io.ts';
import { printOne, printTable } from '../../terminal/listing.ts';
import { count, orMore, time } from '../../terminal/readable.ts';
import type { Column } from '../../terminal/table.ts';
import type { Answers, Items } from '../client/index.ts';
import { openApi } from '../kernel/api.command.ts';
import { listHelp, listVerb } from '../kernel/list/list.command.ts';
import { nameColumn, textColumn } from '../kernel/list/looks.command.ts';
import { printReplay, watchReplay } from './watch.command.ts';

const help = `Replays, finished and under way ("tallyhook replay" starts one).

  replays list          the newest first
${listHelp('replays')}
  replays show ID       one replay, with what it left out and why
  replays watch ID      a progress bar until it ends or is paused
  replays pause ID      no more copies are made; those in the outbox still go
  replays resume ID
  replays cancel ID     for good; copies that still wait are not published`;

async function show(args: string[], env: Env, io: Io): Promise<number> {
  const replay = await openApi(env, io).client.replay(idOf(args));
  const { filter, event_ids: eventIds, skips = [] } = replay;
  await printOne(io, replay, [
    ['id', replay.id],
    ['state', replay.state],
    ['paused because', replay.paused_because],
    ['created (UTC)', `${time(replay.created_at)} by ${replay.created_by}`],
    ['note', replay.note],
    ['events', eventIds?.join(' ')],
    ['filter', filter && JSON.stringify(filter)],
    ['to', replay.queue === null ? 'the exchange' : `queue ${replay.queue}`],
    ['rate', `${count(replay.rate_per_second)} a second`],
    ...Object.entries(replay.counts).map(([name, value]) => [name, countOf(replay, name, value)] as const),
    ['finished (UTC)', replay.finished_at && time(replay.finished_at)],
  ]);
  if (io.stdout.isTTY && skips.length > 0) {
    await io.put('\n');
    await printTable(io, skips, SKIP_COLUMNS);
  }
  return 0;
}

export const SKIP_COLUMNS: readonly Column<NonNullable<Answers['replayDetail']['skips']>[number]>[] = [
  nameColumn('left out', (skip) => skip.event_id),
  textColumn('reason', (skip) => skip.reason),
];

const countOf = ({ matched_exactly: isExact }: Items['replays'], name: string, value: number) =>
  orMore(count(value), isExact || name !== 'matched');

const idOf = (args: string[]) => argumentOf(parse(args, {}, 1).positionals, 'the id of a replay');

async function watch(args: string[], env: Env, io: Io): Promise<number> {
  const id = idOf(args);
  const api = openApi(env, io);
  return watchReplay(io, api, await api.client.replay(id));
}

function steerVerb(action: 'pause' | 'resume' | 'cancel'): Verb {
  return async (args, env, io) => {
    const id = idOf(args);
    const { client, nextKey } = openApi(env, io);
    printReplay(io, await client.steerReplay(id, action, nextKey()));
    return 0;
  };
}

export const replays = nounCommand('replays', {
  help,
  verbs: {
    list: listVerb('replays', 'replay'),
    show,
    watch,
    pause: steerVerb('pause'),
    resume: steerVerb('resume'),
    cancel: steerVerb('cancel'),
  },
});
