// The command line as a function: finds the command, runs it, and maps its result or error to an exit code: 0 done, 1 failed,
// 2 used wrongly, 70 a bug, 78 a configuration or schema that cannot be used. `check` alone has others, which its users' monitoring
// prescribes. What a command opens it closes before it ends; only `serve` needs a process of its own.

import type { Env } from '../config.ts';
import { UsageError } from '../base/errors.ts';
import { version } from '../base/version.ts';
import { HelpAsked } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import { inRepository } from '../terminal/environment.ts';
import type { Io } from '../terminal/io.ts';
import { reportError } from '../terminal/report.ts';

const LOCAL_RUN = inRepository(
  'For variables that are not set, all commands but serve read .local/env, which "npm start" writes.\n',
);

const HELP = `Tallyhook receives webhooks, tallies them in Postgres and relays them to RabbitMQ.

Usage: tallyhook <command> [options]; "tallyhook <command> --help" lists the options of each

  the service
    serve           run it; its settings are environment variables (docs/configuration.md)
    migrate         bring the database's schema up to date
    tokens          create, list and revoke tokens of the operators' API, in the database itself
    healthcheck     say whether the service beside it is alive, for containers

  what goes on (docs/operators.md)
    alerts          incidents: what is going on, and what was; send a test to those who are told of them
    check           one line and an exit code for cron and Nagios

  what happened
    find            lead from an id, an error code or a source to what shows it
    jobs            find jobs, also stuck ones; show all that happened to one
    deliveries      the requests that came in, and their outcomes
    events          the events that were accepted, each once
    publications    every attempt to publish an event
    stats           counts and times, for each interval and source
    replicas        the processes of the service, their versions, and which one leads
    sizes           what the tables hold, what a day adds, and what it comes to
    destinations    which queues are bound for which events, and what is wrong with them
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
Exit codes: 0 done, 1 failed, 2 wrong usage, 70 a bug, 78 wrong configuration or schema. "check" has those of Nagios.`;

/** Loaded on demand: commands for people start without the server's packages, and the server without theirs. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./serve.ts')).serveCommand,
  migrate: async () => (await import('./migrate.ts')).migrateCommand,
  healthcheck: async () => (await import('./healthcheck.ts')).healthcheck,
  tokens: async () => (await import('../operators/tokens/command.ts')).tokens,
  alerts: async () => (await import('../operators/incidents/command.ts')).alerts,
  check: async () => (await import('../operators/incidents/check.command.ts')).check,
  find: async () => (await import('../operators/search/command.ts')).find,
  jobs: async () => (await import('../operators/jobs/command.ts')).jobs,
  deliveries: async () => (await import('../operators/deliveries/command.ts')).deliveries,
  events: async () => (await import('../operators/events/command.ts')).events,
  publications: async () => (await import('../operators/publications/command.ts')).publications,
  stats: async () => (await import('../operators/statistics/command.ts')).stats,
  replicas: async () => (await import('../operators/replicas/command.ts')).replicas,
  sizes: async () => (await import('../operators/sizes/command.ts')).sizes,
  destinations: async () => (await import('../operators/destinations/command.ts')).destinations,
  sources: async () => (await import('../operators/sources/command.ts')).sources,
  console: async () => (await import('../operators/sessions/sign-in.command.ts')).consoleCommand,
  live: async () => (await import('../operators/live/command.ts')).live,
  export: async () => (await import('../operators/export/command.ts')).exportCommand,
  log: async () => (await import('../operators/operator-log/command.ts')).operatorLog,
  sessions: async () => (await import('../operators/sessions/command.ts')).sessions,
  outbox: async () => (await import('../operators/outbox/command.ts')).outbox,
  quarantine: async () => (await import('../operators/quarantine/command.ts')).quarantine,
  replay: async () => (await import('../operators/replays/order.command.ts')).replay,
  replays: async () => (await import('../operators/replays/command.ts')).replays,
  send: async () => (await import('../tools/send/command.ts')).sendCommand,
  verify: async () => (await import('../tools/verify/command.ts')).verifyCommand,
  doctor: async () => (await import('../tools/doctor/command.ts')).doctor,
  forward: async () => (await import('../tools/forward/command.ts')).forward,
  tail: async () => (await import('../tools/tail/command.ts')).tailCommand,
  sandbox: async () => (await import('../sandbox/command/command.ts')).sandboxCommand,
};

/** `args`: the command's name and its arguments. Rejects only if the command cannot be loaded. @returns the exit code */
export async function run(args: readonly string[], env: Env, io: Io): Promise<number> {
  const [name, ...rest] = args;
  switch (name) {
    case '--version':
    case '-v':
      io.say(version);
      return 0;
    case '--help':
    case '-h':
    case 'help':
      io.say(HELP);
      return 0;
    case undefined:
      io.complain(HELP);
      return 2;
    default:
  }
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (load === undefined) return reportError(io, new UsageError(`there is no command "${name}"`), undefined);
  const command = await load();
  try {
    return await command.run(rest, env, io);
  } catch (error) {
    if (!(error instanceof HelpAsked)) return command.report?.(io, error) ?? reportError(io, error, name);
    io.say(command.help);
    return 0;
  }
}
