// `tallyhook tail`: a real subscriber on the bus that prints each event as it arrives: in colour on a terminal, as NDJSON
// (the CloudEvent as published, with characters that cannot be seen escaped) where standard output is piped.

import { createSeen } from '../../base/collections/recent-ids.ts';
import { describeError, UsageError } from '../../base/errors.ts';
import { parseIfJson } from '../../base/json/json.ts';
import { readCertificates } from '../../base/net/certificates.ts';
import { escapeInvisible } from '../../base/text/invisible-characters.ts';
import { SOURCE_NAME } from '../../base/text/source-name.ts';
import { type Env, loadBus } from '../../config.ts';
import { KINDS } from '../../event/index.ts';
import { createSubscriber, type MessageDelivery, type Notice } from '../../subscriber/index.ts';
import { parse, someOf } from '../../terminal/arguments.ts';
import type { Command } from '../../terminal/command.ts';
import { NOTHING_LISTENS, withLocalRun } from '../../terminal/environment.ts';
import type { Format, Io } from '../../terminal/io.ts';
import { option, optionHelp } from '../../terminal/options.ts';
import { clean, counted } from '../../terminal/readable.ts';

const OPTIONS = {
  types: option('LIST', `only these kinds, comma-separated: ${KINDS.join(',')}`),
  source: option('NAME', 'only events of this source'),
  queue: option(
    'NAME',
    `read this queue as it is, or make a durable one of this name, with its dead-letter queue; they
are kept. Events that tail takes from a queue do not reach its other consumers`,
  ),
} as const;

const help = `Prints events as a subscriber receives them, until Ctrl-C; NDJSON when piped.

  tail
${optionHelp(OPTIONS, 23)}

Without --queue it has a queue of its own, which is deleted when tail ends. The queue survives a restart of the broker, so
no event is missed; it keeps at most 100,000 events and 128 MiB while tail is not connected, and if tail is
killed, the broker deletes it after 5 minutes. An event that the broker delivers again after a lost connection is printed
once. A piped line is the body of the message alone; its headers are not shown.`;

/** AMQP's limit, less what the name of a dead-letter queue adds. */
const QUEUE_NAME_MAX_BYTES = 250;
/** Then it ends, if it never was connected: whoever called it waits. */
const CONNECT_ATTEMPTS = 4;
/** Printing is quick. */
const PREFETCH = 100;
/** Ids that are remembered. Above what a consumer has unacknowledged, and what a relay has in flight. */
const SEEN_MAX = 10_000;

/** Runs until a signal, or until the reader of a pipe leaves, as `head` does: exit code 0. A full disk ends it with 1. */
async function run(args: string[], env: Env, io: Io): Promise<number> {
  const { values } = parse(args, OPTIONS);
  const { types, source, queue } = values;
  const kinds: readonly string[] = types === undefined ? ['*'] : someOf('--types', types, KINDS);
  if (source !== undefined && !SOURCE_NAME.test(source))
    throw new UsageError('--source takes the name of a source: 1 to 63 of a-z, 0-9, _ or -');
  if (queue !== undefined && (queue === '' || Buffer.byteLength(queue) > QUEUE_NAME_MAX_BYTES))
    throw new UsageError(`--queue takes the name of a queue: 1 to ${QUEUE_NAME_MAX_BYTES} bytes`);
  const { url: amqpUrl, certificates, exchange, routingPrefix } = loadBus(withLocalRun(env));
  const isCertified = Object.values(certificates).some((path) => path !== undefined);
  const { promise: ended, resolve: end } = Promise.withResolvers<number>();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) io.signals.once(signal, () => end(0));
  io.whenOutputCloses(end); // the queue is deleted first

  const isCopy = createSeen(SEEN_MAX);
  const print = (_: unknown, delivery: MessageDelivery) => {
    const event: unknown = parseIfJson(decoder.decode(delivery.body));
    // A queue that was there may have other bindings.
    const { kind, from } = originOf(event);
    if (types !== undefined && !kinds.includes(kind)) return;
    if (source !== undefined && source !== from) return;
    const copy = delivery.messageId !== undefined && isCopy(delivery.messageId);
    if (copy && delivery.redelivered) return; // it was printed before the connection was lost
    io.say(
      io.stdout.isTTY
        ? eventLine(io, { event, delivery, isCopy: copy })
        : lineOfJson(decoder.decode(delivery.body)),
    );
  };
  const gaveUp = new AbortController();
  const subscriber = await createSubscriber({
    url: amqpUrl,
    ...(isCertified && { tls: () => readCertificates(certificates) }),
    exchange,
    declareExchange: true,
    queue: queue ?? { temporary: 'tallyhook.subscriber.' },
    declare: 'missing',
    bindings: kinds.map((kind) => `${routingPrefix}.${kind}.${source ?? '*'}`),
    order: 'queue',
    prefetch: PREFETCH,
    dedup: false,
    on: { completed: print, failed: print, progress: print, unknown: print, invalid: print },
    signal: gaveUp.signal,
    onNotice: reporter(io, (error) => gaveUp.abort(error)),
  }).catch((error: unknown) => {
    if (describeError(error).code === 'ECONNREFUSED') io.complain(NOTHING_LISTENS);
    throw error;
  });
  const code = await ended;
  await subscriber.stop();
  return code;
}

/** A body that is JSON in one line as it came; any other as a JSON string, so that each message is one line of NDJSON. */
function lineOfJson(body: string): string {
  const isLine = !/[\n\r]/.test(body) && parseIfJson(body) !== undefined;
  return escapeInvisible(isLine ? body : JSON.stringify(body));
}

/** Says what happens to the connection. @param giveUp called if it cannot be made at the start */
function reporter(io: Io, giveUp: (error: Error) => void): (notice: Notice) => void {
  let told = ''; // each try to connect reports the same error
  let wasConnected = false;
  let failed = 0;
  const tellOnce = (line: string) => {
    if (line !== told) io.complain(line);
    told = line;
  };
  return (notice) => {
    if (notice.type === 'connected') {
      wasConnected = true;
      if (notice.again) tellOnce(notice.queueWasGone ? BACK_WITHOUT_QUEUE : BACK);
      else io.complain(io.paint('dim', `listening on queue ${notice.queue}`));
      if (!notice.again && notice.otherConsumers > 0)
        io.complain(
          `it has ${counted(notice.otherConsumers, 'other consumer')}, which will not get what tail takes`,
        );
    } else if (notice.type === 'standby' || notice.type === 'active') {
      io.complain(notice.message);
    } else if (notice.type === 'lost') {
      tellOnce(`the broker: ${describeError(notice.error).message}`);
      tellOnce('the connection to the broker was lost: connecting again');
    } else if (notice.type === 'unreachable') {
      failed += 1;
      if (!wasConnected && failed >= CONNECT_ATTEMPTS) giveUp(notice.error);
      else if (wasConnected) tellOnce(`the broker: ${describeError(notice.error).message}`);
    } else if (notice.level === 'warn' || notice.level === 'error') {
      tellOnce(notice.message);
    }
  };
}

const BACK = 'connected again: the queue has kept what arrived';
const BACK_WITHOUT_QUEUE =
  'connected again, but the queue was gone: events that were published meanwhile are missing here';

const decoder = new TextDecoder();

type Data = Readonly<Record<string, unknown>>;

/** By the event itself: a copy that a replay sends to one queue has the queue's name as its routing key. */
function originOf(event: unknown): { kind: string; from: string } {
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
function eventLine(
  { paint }: Io,
  { event, delivery, isCopy }: { event: unknown; delivery: MessageDelivery; isCopy: boolean },
): string {
  const { messageId, routingKey, failure } = delivery;
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
    failure ? paint('red', clean(`${failure.name}: ${failure.message}`)) : '',
  ]
    .filter((part) => part !== '')
    .join('  ');
}

export const tailCommand: Command = { help, run };
