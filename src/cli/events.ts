// `tallyhook events`: the facts that deliveries told, each once.

import type { Env } from '../config.ts';
import type { Publication } from '../operators/client/index.ts';
import { nounCommand, onlyWord, openApi } from './api.ts';
import { parse } from './arguments.ts';
import { COLUMNS, statusOf } from './columns.ts';
import { printOne } from './listing.ts';
import { listHelp, listVerb } from './lists.ts';
import { put } from './output.ts';
import { time } from './readable.ts';
import { renderTable, terminalWidth } from './table.ts';

const help = `The facts that deliveries told, each once.

  events list           the newest first
${listHelp('events')}
  events show ID        one of them, with its publications`;

async function show(args: string[], env: Env): Promise<number> {
  const id = onlyWord(parse(args, {}, 1).positionals, 'the id of an event');
  const event = await openApi(env).client.event(id);
  await printOne(event, [
    ['id', event.id],
    ['recorded (UTC)', time(event.recorded_at)],
    ['occurred (UTC)', event.occurred_at && time(event.occurred_at)],
    ['sequence', event.sequence],
    ['status', statusOf(event)],
    ['error code', event.error_code],
    ['late', event.late || ''],
    ['delivery', event.delivery_id],
    ['repeats', event.repeats],
    ['on the bus', event.publication],
  ]);
  const { publications } = event as { publications?: readonly Publication[] };
  if (process.stdout.isTTY && publications !== undefined && publications.length > 0) {
    await put(`\n${renderTable(publications, COLUMNS.publications, { width: terminalWidth() })}\n`);
  }
  return 0;
}

export const events = nounCommand('events', { help, verbs: { list: listVerb('events', 'event'), show } });
