// The command line, which bin/tallyhook.js loads. Finds the command, runs it, and maps its result or error to an exit code:
// 0 done, 1 failed, 2 used wrongly, 70 a bug, 78 a configuration or schema that cannot be used.

import { HelpAsked } from './cli/arguments.ts';
import type { Command } from './cli/command.ts';
import { inRepository } from './cli/environment.ts';
import { complain, exitWhenOutputCloses, say } from './cli/output.ts';
import { reportError } from './cli/report.ts';
import { UsageError } from './errors.ts';
import { version } from './version.ts';

const LOCAL_RUN = inRepository(
  'For variables that are not set, all commands but serve read .local/env, which "npm start" writes.\n',
);

const HELP = `Tallyhook receives webhooks, tallies them in Postgres and relays them to RabbitMQ.

Usage: tallyhook <command> [options]; "tallyhook <command> --help" lists the options of each

  the service
    serve           run it; its settings are environment variables (docs/configuration.md)
    migrate         bring the database's schema up to date
    tokens          create, list and revoke tokens of the operators' API, in the database itself

  what happened (docs/operators.md)
    find            lead from an id, an error code or a source to what shows it
    jobs            find jobs, also stuck ones; show all that happened to one
    deliveries      the requests that came in, and their outcomes
    events          the events that were accepted, each once
    publications    every attempt to publish an event
    stats           counts and times, for each interval and source
    replicas        the processes of the service, their versions, and which one leads
    sources         who sends, which secrets matched, and fields and statuses that we do not know
    console         print an address of the console that signs in once
    live            deliveries and publications as they happen
    export          a whole list as NDJSON or CSV
    log             what operators read and what they did
    sessions        who is signed in to the console; end a session

  correcting
    outbox          events that no queue received, or that the relay gave up on
    quarantine      deliveries that were not understood
    replay          publish events again
    replays         list, watch, pause, resume and cancel replays

  development
    send            sign and send a notification
    verify          say what is wrong with a signature, offline
    doctor          check an endpoint from the sender's side: address, TLS, signatures, limits, time
    forward         send deliveries to your handler
    tail            print events as a subscriber receives them
    sandbox         run a stand-in for the conversion service

  --help, --version

${LOCAL_RUN}Commands that ask the operators' API take its address and token from TALLYHOOK_URL and
TALLYHOOK_TOKEN. Lists are tables on a terminal, NDJSON when piped.
Exit codes: 0 done, 1 failed, 2 wrong usage, 70 a bug, 78 wrong configuration or schema.`;

/** Loaded on demand: commands for people start without the server's packages, and the server without theirs. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./cli/serve.ts')).serveCommand,
  migrate: async () => (await import('./cli/migrate.ts')).migrateCommand,
  tokens: async () => (await import('./cli/tokens.ts')).tokens,
  find: async () => (await import('./cli/find.ts')).find,
  jobs: async () => (await import('./cli/jobs.ts')).jobs,
  deliveries: async () => (await import('./cli/deliveries.ts')).deliveries,
  events: async () => (await import('./cli/events.ts')).events,
  publications: async () => (await import('./cli/publications.ts')).publications,
  stats: async () => (await import('./cli/stats.ts')).stats,
  replicas: async () => (await import('./cli/replicas.ts')).replicas,
  sources: async () => (await import('./cli/sources.ts')).sources,
  console: async () => (await import('./cli/console.ts')).consoleCommand,
  live: async () => (await import('./cli/live.ts')).live,
  export: async () => (await import('./cli/export.ts')).exportCommand,
  log: async () => (await import('./cli/operator-log.ts')).operatorLog,
  sessions: async () => (await import('./cli/sessions.ts')).sessions,
  outbox: async () => (await import('./cli/outbox.ts')).outbox,
  quarantine: async () => (await import('./cli/quarantine.ts')).quarantine,
  replay: async () => (await import('./cli/replay.ts')).replay,
  replays: async () => (await import('./cli/replays.ts')).replays,
  send: async () => (await import('./cli/send.ts')).sendCommand,
  verify: async () => (await import('./cli/verify.ts')).verifyCommand,
  doctor: async () => (await import('./cli/doctor.ts')).doctor,
  forward: async () => (await import('./cli/forward.ts')).forward,
  tail: async () => (await import('./cli/tail.ts')).tailCommand,
  sandbox: async () => (await import('./cli/sandbox.ts')).sandboxCommand,
};

async function run(args: string[]): Promise<number> {
  const [name, ...rest] = args;
  switch (name) {
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
  }
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (load === undefined) return reportError(new UsageError(`there is no command "${name}"`), undefined);
  const command = await load();
  try {
    return await command.run(rest, process.env);
  } catch (error) {
    if (!(error instanceof HelpAsked)) return reportError(error, name);
    say(command.help);
    return 0;
  }
}

/** Its output is a log: it keeps running when nobody reads that, and flushes the last lines itself. */
const isService = process.argv[2] === 'serve';

if (!isService) exitWhenOutputCloses();
process.exitCode = await run(process.argv.slice(2)).catch((error: unknown) => reportError(error, undefined));
// A timer or socket that was left open must not keep a finished command alive. Output is flushed first, so that an error of
// writing is reported.
if (isService) process.exit();
process.stdout.write('', () => setImmediate(() => process.exit()));
