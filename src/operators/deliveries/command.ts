// `tallyhook deliveries`: the requests of senders, and their outcome.

import { maskInvisibleInLines } from '../../base/text/invisible-characters.ts';
import type { Env } from '../../config.ts';
import { argumentOf, parse } from '../../terminal/arguments.ts';
import { nounCommand } from '../../terminal/command.ts';
import type { Io } from '../../terminal/io.ts';
import { printOne } from '../../terminal/listing.ts';
import { flag, optionHelp } from '../../terminal/options.ts';
import { sizeOf, time } from '../../terminal/readable.ts';
import { answerOf, statusOf } from '../client/index.ts';
import { openApi } from '../kernel/api.command.ts';
import { listHelp, listVerb } from '../kernel/list/list.command.ts';
import { diff } from './difference.command.ts';

const SHOW_OPTIONS = {
  body: flag('its body instead, byte for byte when piped; the operator log records that it was read'),
};

const help = `The requests of senders, and their outcome.

  deliveries list       the newest first
${listHelp('deliveries')}
  deliveries show ID    one delivery, with its headers
${optionHelp(SHOW_OPTIONS)}
  deliveries diff ID    of a conflict: the fields that it has otherwise than the event; the operator log records that
                        both bodies were read`;

async function show(args: string[], env: Env, io: Io): Promise<number> {
  const { values, positionals } = parse(args, SHOW_OPTIONS, 1);
  const id = argumentOf(positionals, 'the id of a delivery');
  const { client } = openApi(env, io);
  if (values.body) return printBody(io, client.deliveryBody(id));
  const delivery = await client.delivery(id);
  await printOne(io, delivery, [
    ['id', delivery.id],
    ['received (UTC)', time(delivery.received_at)],
    ['source', delivery.source],
    ['outcome', delivery.outcome],
    ['answered', answerOf(delivery)],
    ['reason', delivery.reason],
    ['job', delivery.job_id],
    ['status', statusOf(delivery)],
    ['error code', delivery.error_code],
    ['event', delivery.event_id],
    ['path', delivery.path],
    ['from', delivery.remote_address],
    ['through', delivery.peer_address],
    ['secret', delivery.secret_fingerprint],
    ['body', `${sizeOf(delivery.body_bytes)}${delivery.body_kept ? ', kept: see --body' : ', not kept'}`],
    ['released (UTC)', delivery.released_at && time(delivery.released_at)],
    ['discarded (UTC)', delivery.discarded_at && time(delivery.discarded_at)],
    ['discarded by', delivery.discarded_by],
    ['note', delivery.discard_note],
    ...Object.entries(delivery.headers ?? {}).map(headerLine),
  ]);
  return 0;
}

const headerLine = ([name, value]: [string, unknown]) =>
  [`header ${name}`, [value].flat().join(', ')] as const;

async function printBody(io: Io, chunks: AsyncIterable<Uint8Array>): Promise<number> {
  const decoder = new TextDecoder();
  for await (const chunk of chunks) {
    // Piped, it is byte for byte what was signed. On a terminal, it must not control that.
    if (!io.stdout.isTTY) await io.putBytes(chunk);
    else await io.put(maskInvisibleInLines(decoder.decode(chunk, { stream: true })));
  }
  if (io.stdout.isTTY) await io.put('\n');
  return 0;
}

export const deliveries = nounCommand('deliveries', {
  help,
  verbs: { list: listVerb('deliveries', 'delivery'), show, diff },
});
