// `tallyhook events`: what deliveries reported, each event once.

import { indentedJson } from '../../base/json/indented-json.ts';
import { maskInvisibleInLines } from '../../base/text/invisible-characters.ts';
import type { Env } from '../../config.ts';
import { argumentOf, parse } from '../../terminal/arguments.ts';
import { nounCommand } from '../../terminal/command.ts';
import type { Io } from '../../terminal/io.ts';
import { printOne, printTable } from '../../terminal/listing.ts';
import { flag, optionHelp } from '../../terminal/options.ts';
import { time } from '../../terminal/readable.ts';
import { statusOf } from '../client/index.ts';
import { openApi } from '../kernel/api.command.ts';
import { COLUMNS } from '../kernel/list/columns.command.ts';
import { listHelp, listVerb } from '../kernel/list/list.command.ts';

const SHOW_OPTIONS = {
  cloudevent:
    flag(`the CloudEvent instead, as a subscriber gets it, byte for byte when piped; the operator log
records that a body was read`),
};

const help = `What deliveries reported, each event once.

  events list           the newest first
${listHelp('events')}
  events show ID        one event, with its publications
${optionHelp(SHOW_OPTIONS)}`;

async function show(args: string[], env: Env, io: Io): Promise<number> {
  const { values, positionals } = parse(args, SHOW_OPTIONS, 1);
  const id = argumentOf(positionals, 'the id of an event');
  const { client } = openApi(env, io);
  if (values.cloudevent) return printCloudEvent(io, (await client.cloudEvent(id)).body);
  const event = await client.event(id);
  await printOne(io, event, [
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
    ['exchange', event.published_to?.exchange],
    ['routing key', event.published_to?.routing_key],
  ]);
  if (io.stdout.isTTY && event.publications.length > 0) {
    await io.put('\n');
    await printTable(io, event.publications, COLUMNS.publications);
  }
  return 0;
}

/** Piped, it is byte for byte what is published. On a terminal, it must not control that. */
async function printCloudEvent(io: Io, body: string): Promise<number> {
  if (!io.stdout.isTTY) await io.putBytes(Buffer.from(body));
  else await io.put(`${maskInvisibleInLines(indentedJson(body, '  ') ?? body)}\n`);
  return 0;
}

export const events = nounCommand('events', { help, verbs: { list: listVerb('events', 'event'), show } });
