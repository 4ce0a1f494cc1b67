// `tallyhook tail`: a real subscriber on the bus that prints each event as it arrives: in colour on a terminal, as NDJSON
// (the CloudEvent as published, with characters that cannot be seen escaped) where standard output is piped.

import { type Env, loadBus } from '../config.ts';
import { describeError, UsageError } from '../errors.ts';
import { SOURCE_NAME } from '../source-name.ts';
import { type ConnectionChange, type ReceivedEvent, subscribe } from '../subscriber/index.ts';
import { escapeUnseen } from '../unseen.ts';
import { parse, someOf, TEXT } from './arguments.ts';
import type { Command } from './command.ts';
import { NOTHING_LISTENS, withLocalRun } from './environment.ts';
import { complain, type Format, paint, say, whenOutputCloses } from './output.ts';
import { clean, counted } from './readable.ts';
import { KINDS } from '../event/index.ts';
import { createSeen } from './seen.ts';

const help = `Prints events as a subscriber receives them, until Ctrl-C; NDJSON when piped.

  tail
    --types LIST            only these kinds, comma-separated: ${KINDS.join(',')}
    --source NAME           only events of this source
    --queue NAME            read this queue as it is, or make a durable one of this name; it is kept. Events that tail
                            takes from a queue do not reach its other consumers

Without --queue it has a queue of its own, which is deleted when tail ends. The queue survives a restart of the broker, so
no event is missed; it keeps at most 100,000 events and 128 MiB while tail is not connected, and if tail is
killed, the broker deletes it after 5 minutes. An event that the broker delivers again after a lost connection is printed
once. A piped line is the body of the message alone; its headers are not shown.`;

const CHANGES: Readonly<Record<ConnectionChange, string>> = {
  lost: 'the connection to the broker was lost: connecting again',
  back: 'connected again: the queue has kept what arrived',
  back_without_queue:
    'connected again, but the queue was gone: events that were published meanwhile are missing here',
};

/** AMQP's limit. */
const QUEUE_NAME_MAX_BYTES = 255;
/** Ids that are remembered. Above what a consumer has unacknowledged, and what a relay has in flight. */
const SEEN_MAX = 10_000;

/** Runs until a signal, or until the reader of a pipe leaves, as `head` does: exit code 0. A full disk ends it with 1. */
async function run(args: string[], env: Env): Promise<number> {
  const { values } = parse(args, { types: TEXT, source: TEXT, queue: TEXT });
  const { types, source, queue } = values;
  const kinds: readonly string[] = types === undefined ? ['*'] : someOf('--types', types, KINDS);
  if (source !== undefined && !SOURCE_NAME.test(source))
    throw new UsageError('--source takes the name of a source: 1 to 63 of a-z, 0-9, _ or -');
  if (queue !== undefined && (queue === '' || Buffer.byteLength(queue) > QUEUE_NAME_MAX_BYTES))
    throw new UsageError(`--queue takes the name of a queue: 1 to ${QUEUE_NAME_MAX_BYTES} bytes`);
  const { url: amqpUrl, exchange, routingPrefix } = loadBus(withLocalRun(env));
  const { promise: ended, resolve: end } = Promise.withResolvers<number>();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => end(0));
  whenOutputCloses(end); // the queue is deleted first

  let told = ''; // each try to connect reports the same error
  const tellOnce = (line: string) => {
    if (line !== told) complain(line);
    told = line;
  };
  const isCopy = createSeen(SEEN_MAX);
  const subscription = await subscribe({
    amqpUrl,
    exchange,
    queue,
    bindings: kinds.map((kind) => `${routingPrefix}.${kind}.${source ?? '*'}`),
    onEvent: (event) => {
      // A queue that was there may have other bindings.
      const { kind, from } = originOf(event);
      if (types !== undefined && !kinds.includes(kind)) return;
      if (source !== undefined && source !== from) return;
      const copy = event.messageId !== undefined && isCopy(event.messageId);
      if (copy && event.redelivered) return; // it was printed before the connection was lost
      say(process.stdout.isTTY ? eventLine(event, copy) : escapeUnseen(event.body.toString('utf8')));
    },
    onTrouble: (error) => tellOnce(`the broker: ${describeError(error).message}`),
    onConnection: (change) => tellOnce(CHANGES[change]),
  }).catch((error: unknown) => {
    if (describeError(error).code === 'ECONNREFUSED') complain(NOTHING_LISTENS);
    throw error;
  });
  complain(paint('dim', `listening on queue ${subscription.queue}`));
  if (subscription.otherConsumers > 0)
    complain(
      `it has ${counted(subscription.otherConsumers, 'other consumer')}, which will not get what tail takes`,
    );
  const code = await ended;
  await subscription.close();
  return code;
}

type Data = Readonly<Record<string, unknown>>;

/** By the event itself: a copy that a replay sends to one queue has the queue's name as its routing key. */
function originOf({ event }: ReceivedEvent): { kind: string; from: string } {
  const { type, source } = (event ?? {}) as Record<string, unknown>;
  return { kind: String(type).split('.').at(-1) ?? '', from: String(source).split('/').at(-1) ?? '' };
}

const SHOWN: Readonly<Record<string, { colour: Format; detail: (data: Data) => string }>> = {
  completed: {
    colour: 'green',
    detail: (data) => `${String(data['output_format'])}, ${String(data['output_size_bytes'])} bytes`,
  },
  failed: {
    colour: 'red',
    detail: (data) => `${String(data['error_code'])}: ${String(data['error_message'])}`,
  },
  progress: { colour: 'cyan', detail: () => '' },
};

/** On a terminal: when it was accepted, so that the lines are in order, its kind and id, and what the id does not say. */
function eventLine({ event, messageId, routingKey }: ReceivedEvent, isCopy: boolean): string {
  if (typeof event !== 'object' || event === null)
    return `${clean(routingKey)} ${clean(messageId ?? '(no id)')} (not JSON)`;
  const { type, recordedtime, late, data } = event as Record<string, unknown>;
  const kind = clean(String(type).split('.').at(-1));
  const shown = Object.hasOwn(SHOWN, kind) ? SHOWN[kind] : undefined;
  return [
    paint('dim', clean(String(recordedtime))),
    shown ? paint(shown.colour, kind.padEnd(9)) : kind,
    paint('bold', clean(String(messageId))),
    shown ? clean(shown.detail((data ?? {}) as Data)) : '',
    late === true ? paint('yellow', 'late') : '',
    isCopy ? paint('yellow', 'copy') : '',
  ]
    .filter((part) => part !== '')
    .join('  ');
}

export const tailCommand: Command = { help, run };
