// `tallyhook replays`: what was replayed, what is being replayed, and how to stop it.

import type { Env } from '../config.ts';
import type { Replay } from '../operators/client/index.ts';
import { nounCommand, onlyWord, openApi } from './api.ts';
import { parse } from './arguments.ts';
import { printOne } from './listing.ts';
import { listHelp, listVerb } from './lists.ts';
import { put } from './output.ts';
import { count, orMore, time } from './readable.ts';
import { renderTable, terminalWidth } from './table.ts';
import { printReplay, watchReplay } from './watch-replay.ts';

const help = `What was replayed, and what is being replayed ("tallyhook replay" begins one).

  replays list          the newest first
${listHelp('replays', 'running, paused, cancelled or finished')}
  replays show ID       one of them, with what it left out and why
  replays watch ID      a progress bar until it rests
  replays pause ID      no more copies are made; those in the outbox still go
  replays resume ID
  replays cancel ID     for good, with the copies that still wait`;

async function show(args: string[], env: Env): Promise<number> {
  const replay = await openApi(env).client.replay(idOf(args));
  const { filter, event_ids: eventIds, skips } = replay as Extra & typeof replay;
  await printOne(replay, [
    ['id', replay.id],
    ['state', replay.state],
    ['paused because', replay.paused_because],
    ['created (UTC)', `${time(replay.created_at)} by ${replay.created_by}`],
    ['note', replay.note],
    ['events', eventIds?.join(' ')],
    ['filter', filter && JSON.stringify(filter)],
    ['to', replay.queue === null ? 'the exchange' : `queue ${replay.queue}`],
    ['rate', `${count(replay.rate_per_second)} a second`],
    ...Object.entries(replay.counts).map(
      ([name, value]) => [name, countOf(replay, name, Number(value))] as const,
    ),
    ['finished (UTC)', replay.finished_at && time(replay.finished_at)],
  ]);
  if (process.stdout.isTTY && skips !== undefined && skips.length > 0) {
    const columns = [
      { head: 'left out', text: (item: Skip) => item.event_id },
      { head: 'since', text: (item: Skip) => item.reason },
    ];
    await put(`\n${renderTable(skips, columns, { width: terminalWidth() })}\n`);
  }
  return 0;
}

const countOf = ({ matched_exactly: isExact }: Replay, name: string, value: number) =>
  orMore(count(value), isExact || name !== 'matched');

type Skip = { readonly event_id: string; readonly reason: string };
type Extra = {
  readonly filter?: object | null;
  readonly event_ids?: readonly string[] | null;
  readonly skips?: readonly Skip[];
};

const idOf = (args: string[]) => onlyWord(parse(args, {}, 1).positionals, 'the id of a replay');

async function watch(args: string[], env: Env): Promise<number> {
  const id = idOf(args);
  const api = openApi(env);
  return watchReplay(api, await api.client.replay(id));
}

function steerVerb(action: 'pause' | 'resume' | 'cancel') {
  return async (args: string[], env: Env) => {
    const id = idOf(args);
    const { client, nextKey } = openApi(env);
    printReplay(await client.steerReplay(id, action, nextKey()));
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
