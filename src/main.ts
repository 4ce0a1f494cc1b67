#!/usr/bin/env node
// The command line. Parses, runs one command, and turns its result or error into an exit code:
// 0 done, 1 failed, 2 used wrongly, 70 a bug, 78 a configuration or schema that cannot be used.

import { HelpAsked, parse, whole } from './commands/arguments.ts';
import { withLocalRun } from './commands/environment.ts';
import { migrateCommand } from './commands/migrate.ts';
import { listOutbox, retryOutbox } from './commands/outbox.ts';
import { complain, say } from './commands/output.ts';
import { send } from './commands/send.ts';
import { serve } from './commands/serve.ts';
import { tail } from './commands/tail.ts';
import { ConfigError, describeError, SchemaError, UsageError } from './errors.ts';
import { isOutboxState } from './outbox/operate.ts';
import { version } from './version.ts';

const HELP = `Tallyhook receives webhooks, tallies them in Postgres and relays them to RabbitMQ.

Usage: tallyhook <command> [options]

  serve                 run the service; configured by the environment (see the README)
  migrate               bring the database's schema up to date
  send <kind>           sign and send a notification: completed, failed or progress
    --job ID              the job's id (a random one)
    --percent N           progress in percent (50)
    --source NAME         sign and send as this source of SOURCES_FILE
    --url URL             where to (http://127.0.0.1:$PORT/webhooks[/NAME])
    --file BODY.json      send these bytes instead
    --tamper              change the body after signing
    --repeat N            send the same N times (1)
  tail                  print events as a subscriber receives them; NDJSON when piped
    --types LIST          only these kinds, comma-separated: completed,failed,progress
    --source NAME         only events of this source
    --queue NAME          use a durable queue of this name
  outbox                list events that wait for an operator: returned or parked
    --state STATE         only these: pending, returned or parked
    --limit N             at most so many (50)
    --retry WHAT          publish again: an event's id, or all that are "returned" or "parked"
  sandbox               run a stand-in for the conversion service, for development: see "sandbox --help"

  --help, --version

migrate, send, tail and outbox read .local/env of a local run ("npm start") where the environment is silent.
Exit codes: 0 done, 1 failed, 2 wrong usage, 70 a bug, 78 wrong configuration or schema.`;

const KINDS = ['completed', 'failed', 'progress'] as const;
type Kind = (typeof KINDS)[number];

async function run(args: string[]): Promise<number> {
  const [command, ...rest] = args;
  switch (command) {
    case 'serve':
      parse(rest, {});
      return serve(process.env);
    case 'migrate':
      parse(rest, {});
      return migrateCommand(withLocalRun(process.env));
    case 'send':
      return runSend(rest);
    case 'tail':
      return runTail(rest);
    case 'outbox':
      return runOutbox(rest);
    case 'sandbox': {
      // What it needs (its own HTTP client, SQLite) no other command has to load.
      const { sandbox } = await import('./commands/sandbox.ts');
      return sandbox(rest);
    }
    case '--version':
    case '-v':
      say(version);
      return 0;
    case '--help':
    case '-h':
    case 'help':
      say(HELP);
      return 0;
    case undefined:
      complain(HELP);
      return 2;
    default:
      throw new UsageError(`there is no command "${command}"`);
  }
}

function runSend(args: string[]): Promise<number> {
  const text = { type: 'string' } as const;
  const options = {
    job: text,
    percent: text,
    source: text,
    url: text,
    file: text,
    tamper: { type: 'boolean' },
    repeat: text,
  } as const;
  const { values, positionals } = parse(args, options, 1);
  const [kind = 'completed'] = positionals;
  if (!isKind(kind)) throw new UsageError(`send takes one of ${KINDS.join(', ')}`);
  return send(
    {
      kind,
      job: values.job,
      percent: whole('--percent', values.percent, 50, { min: 0, max: 100 }),
      source: values.source,
      url: values.url,
      file: values.file,
      tamper: values.tamper ?? false,
      repeat: whole('--repeat', values.repeat, 1, { min: 1, max: 1_000_000 }),
    },
    withLocalRun(process.env),
  );
}

function runTail(args: string[]): Promise<number> {
  const text = { type: 'string' } as const;
  const { values } = parse(args, { types: text, source: text, queue: text });
  const types = values.types?.split(',').map((type) => type.trim()) ?? [];
  const unknown = types.filter((type) => !isKind(type));
  if (unknown.length > 0)
    throw new UsageError(`--types takes ${KINDS.join(', ')}, not "${unknown.join(', ')}"`);
  return tail({ types, source: values.source, queue: values.queue }, withLocalRun(process.env));
}

function runOutbox(args: string[]): Promise<number> {
  const text = { type: 'string' } as const;
  const { values } = parse(args, { state: text, limit: text, retry: text });
  if (values.retry !== undefined) return retryOutbox(values.retry, withLocalRun(process.env));
  const states = values.state === undefined ? (['returned', 'parked'] as const) : [values.state];
  if (!states.every(isOutboxState)) throw new UsageError('--state takes pending, returned or parked');
  const limit = whole('--limit', values.limit, 50, { min: 1, max: 10_000 });
  return listOutbox({ states, limit }, withLocalRun(process.env));
}

function isKind(text: string): text is Kind {
  return (KINDS as readonly string[]).includes(text);
}

function report(error: unknown): number {
  if (error instanceof HelpAsked) {
    say(HELP);
    return 0;
  }
  if (error instanceof UsageError) {
    complain(`${error.message}\nTry "tallyhook --help".`);
    return 2;
  }
  const { name, code, message } = describeError(error);
  complain(code === undefined ? `${name}: ${message}` : `${code}: ${message}`);
  return error instanceof ConfigError || error instanceof SchemaError ? 78 : 1;
}

process.exitCode = await run(process.argv.slice(2)).catch(report);
// A timer or socket that somebody forgot must not keep a finished command alive; output is flushed first.
process.stdout.write('', () => process.exit());
