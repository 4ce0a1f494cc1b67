// `tallyhook events`: what deliveries reported, each event once.

import type { Env } from '../config.ts';
import { openApi } from './api.ts';
import { argumentOf, parse } from './arguments.ts';
import { COLUMNS, statusOf } from './columns.ts';
import { nounCommand } from './command.ts';
import { printOne, printTable } from './listing.ts';
import { listHelp, listVerb } from './lists.ts';
import { put } from './output.ts';
import { time } from './readable.ts';

const help = `What deliveries reported, each event once.

  events list           the newest first
${listHelp('events')}
  events show ID        one event, with its publications`;

async function show(args: string[], env: Env): Promise<number> {
  const id = argumentOf(parse(args, {}, 1).positionals, 'the id of an event');
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
  if (process.stdout.isTTY && event.publications.length > 0) {
    await put('\n');
    await printTable(event.publications, COLUMNS.publications);
  }
  return 0;
}

export const events = nounCommand('events', { help, verbs: { list: listVerb('events', 'event'), show } });
