// `tallyhook tail`: a real subscriber on the bus that prints each event as it arrives: in colour for a person,
// as NDJSON (the CloudEvent as published, what cannot be seen escaped) where standard output is piped.

import { type Env, loadBus } from '../config.ts';
import { describeError } from '../errors.ts';
import { type ReceivedEvent, subscribe } from '../subscriber/index.ts';
import { escapeUnseen } from '../unseen.ts';
import { parse, someOf } from './arguments.ts';
import type { Command } from './command.ts';
import { withLocalRun } from './environment.ts';
import { complain, paint, say } from './output.ts';
import { clean } from './readable.ts';

const KINDS = ['completed', 'failed', 'progress'] as const;

const help = `Prints events as a subscriber receives them, until Ctrl-C; NDJSON when piped.

  tail
    --types LIST            only these kinds, comma-separated: ${KINDS.join(',')}
    --source NAME           only events of this source
    --queue NAME            use a durable queue of this name`;

type TailOptions = {
  /** Kinds: completed, failed, progress. Empty means all. */
  readonly types: readonly string[];
  readonly source: string | undefined;
  /** A durable queue of this name, which keeps events while nobody listens. */
  readonly queue: string | undefined;
};

const COLOURS = { completed: 'green', failed: 'red', progress: 'cyan' } as const;

/** Runs until a signal. Exit code 0. */
async function tail(options: TailOptions, env: Env): Promise<number> {
  const { url: amqpUrl, exchange, routingPrefix } = loadBus(env);
  const kinds = options.types.length > 0 ? options.types : ['*'];
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  process.once('SIGINT', () => end());
  process.once('SIGTERM', () => end());
  // The reader of a pipe may leave first, as `head` does.
  process.stdout.on('error', () => end());

  const subscription = await subscribe({
    amqpUrl,
    exchange,
    queue: options.queue,
    bindings: kinds.map((kind) => `${routingPrefix}.${kind}.${options.source ?? '*'}`),
    onEvent: (event) => {
      // A durable queue may hold what an earlier call bound.
      const [, kind = '', source] = event.routingKey.slice(routingPrefix.length).split('.');
      if (options.types.length > 0 && !options.types.includes(kind)) return;
      if (options.source !== undefined && options.source !== source) return;
      say(process.stdout.isTTY ? readable(event) : escapeUnseen(event.body.toString('utf8')));
    },
    onTrouble: (error) => complain(`the broker: ${describeError(error).message}`),
  });
  if (process.stdout.isTTY) complain(paint('dim', `listening on queue ${subscription.queue}`));
  await ended;
  await subscription.close();
  return 0;
}

function readable({ event, messageId, routingKey }: ReceivedEvent): string {
  if (typeof event !== 'object' || event === null)
    return `${clean(routingKey)} ${clean(messageId ?? '(no id)')} (not JSON)`;
  const { type, subject, time, late, data } = event as Record<string, unknown>;
  const kind = clean(String(type).split('.').at(-1));
  const fields = (data ?? {}) as Record<string, unknown>;
  const detail = {
    completed: () => `${String(fields['output_format'])}, ${String(fields['output_size_bytes'])} bytes`,
    failed: () => `${String(fields['error_code'])}: ${String(fields['error_message'])}`,
    progress: () => `${String(fields['progress_percentage'])} %`,
  };
  const isKnown = (text: string): text is keyof typeof detail => Object.hasOwn(detail, text);
  return [
    paint('dim', clean(String(time))),
    isKnown(kind) ? paint(COLOURS[kind], kind.padEnd(9)) : kind,
    paint('bold', clean(String(subject))),
    isKnown(kind) ? clean(detail[kind]()) : '',
    late === true ? paint('yellow', 'late') : '',
    paint('dim', clean(String(messageId))),
  ]
    .filter((part) => part !== '')
    .join('  ');
}

function run(args: string[], env: Env): Promise<number> {
  const text = { type: 'string' } as const;
  const { values } = parse(args, { types: text, source: text, queue: text });
  const types = values.types === undefined ? [] : someOf('--types', values.types, KINDS);
  return tail({ types, source: values.source, queue: values.queue }, withLocalRun(env));
}

export const tailCommand: Command = { help, run };
