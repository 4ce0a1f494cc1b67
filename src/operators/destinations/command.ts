// `tallyhook destinations`: which queues are bound for which events, and what is wrong with them.

import type { Env } from '../../config.ts';
import { parse } from '../../terminal/arguments.ts';
import type { Command } from '../../terminal/command.ts';
import type { Io } from '../../terminal/io.ts';
import { printTable } from '../../terminal/listing.ts';
import { clean, count } from '../../terminal/readable.ts';
import type { Column } from '../../terminal/table.ts';
import type { Answers } from '../client/index.ts';
import { openApi } from '../kernel/api.command.ts';
import { nameColumn, numberColumn, textColumn } from '../kernel/list/looks.command.ts';
import { depthText, MORE_QUEUES, NOTHING_BOUND, receivedText } from './contract.ts';

const help = `Which queues are bound to the exchange, for which events, how full they are, and what is wrong with them.

  destinations          on a terminal a table, and what is wrong below it; in a pipe one JSON object

The service asks RabbitMQ's management API, if BROKER_MANAGEMENT_URL is set. Exit code 1 if that is not set, or did not answer.`;

type Destination = Answers['destinations']['items'][number];

async function run(args: string[], env: Env, io: Io): Promise<number> {
  parse(args, {});
  const found = await openApi(env, io).client.destinations();
  const { state, because, items, warnings, has_more: hasMore } = found;
  if (!io.stdout.isTTY) await io.putJson(found);
  if (state !== 'answered') {
    io.complain(clean(because ?? state));
    return 1;
  }
  if (!io.stdout.isTTY) return 0;
  if (items.length === 0) io.complain(NOTHING_BOUND);
  else await printTable(io, items, DESTINATIONS);
  for (const { message } of warnings) io.complain(io.paint('yellow', clean(message)));
  if (hasMore) io.complain(MORE_QUEUES);
  return 0;
}

export const DESTINATIONS: readonly Column<Destination>[] = [
  nameColumn('queue', ({ name, what }) => (what === 'exchange' ? `${name} (an exchange)` : name)),
  numberColumn('messages', (item) => depthText(item) ?? ''),
  numberColumn('consumers', ({ consumers }) => (consumers === null ? '' : count(consumers))),
  { head: 'type', text: ({ type }) => type ?? '' },
  { head: 'when full', text: ({ overflow }) => overflow ?? '', drop: true },
  { head: 'policy', text: ({ policy }) => clean(policy ?? ''), drop: true },
  textColumn('receives', receivedText),
];

export const destinations: Command = { help, run };
